"""One tool run's access to the world: every capability call of the run comes through here.

The guest is never trusted to police itself: what its tool did not declare is refused here, whatever
the guest asks for, and every call is an event whether it was granted or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from device.clock import Clock
from edge_agent.engine.broker import db, files, images, llm
from edge_agent.engine.broker.capabilities import DATABASE_FOLDER, TOOL_FOLDER, Capabilities, FolderGrant
from edge_agent.engine.broker.folders import DeclaredFolder
from edge_agent.engine.broker.image_table import ImageTable
from edge_agent.engine.broker.requests import Arguments, parse_arguments, to_json
from edge_agent.engine.broker.sql_pool import SqlPool
from edge_agent.engine.ports import EngineHost
from edge_agent.engine.sandbox.api import CapabilityReply, CapabilityRequest
from edge_agent.errors import StyleEyesError
from edge_agent.events import CapabilityFinished, CapabilityStarted, ErrorInfo, Spine, new_span
from edge_agent.text import one_line

_Grant = TypeVar("_Grant")
_METHODS = frozenset(
    {
        "db.query",
        "db.execute",
        "images.open",
        "files.readText",
        "files.writeText",
        "files.list",
        "llm.generate",
    }
)
_MAX_DETAIL = 4096
"""Characters of SQL that an event shows."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """A granted call's value as JSON text, and its size for the log."""

    value_json: str
    bytes: int
    rows: int | None = None


class Broker:
    """Answers the capability calls of one run.

    `data` is the calling agent's data folder (a shared tool gets the caller's), `span` the run's span,
    `images` the run's own table, `deadline` the run's end on `clock`. Cancelling a call ends its host
    work: the database process is killed, the model request closed.
    """

    def __init__(
        self,
        capabilities: Capabilities,
        data: Path,
        host: EngineHost,
        images: ImageTable,
        sql: SqlPool,
        spine: Spine,
        clock: Clock,
        span: str,
        *,
        deadline: float | None = None,
    ) -> None:
        self._capabilities = capabilities
        self._data = data
        self._host = host
        self._images = images
        self._sql = sql
        self._spine = spine
        self._clock = clock
        self._span = span
        self._deadline = deadline

    async def handle(self, request: CapabilityRequest) -> CapabilityReply:
        """Answers one call; never raises but for cancellation."""
        began = self._clock.monotonic()
        span = new_span("cap")
        arguments, refusal = _parse(request)
        self._spine.emit(_started(request.method, arguments), span=span, parent=self._span)

        def finished(ok: bool, answer: _Answer | None = None, error: ErrorInfo | None = None) -> None:
            body = CapabilityFinished(
                ok=ok,
                ms=(self._clock.monotonic() - began) * 1000,
                bytes=answer.bytes if answer else None,
                rows=answer.rows if answer else None,
                error=error,
            )
            self._spine.emit(body, span=span, parent=self._span)

        try:
            if refusal is not None:
                raise refusal
            answer = await self._answer(arguments, span)
        except StyleEyesError as error:
            finished(False, error=ErrorInfo(code=error.code, message=error.message, hint=error.hint))
            return CapabilityReply(ok=False, code=error.code, message=_sentence(error))
        except asyncio.CancelledError:
            finished(False, error=ErrorInfo(code="CANCELLED", message="The run ended before the answer."))
            raise
        except Exception as error:  # noqa: BLE001 - the border: an unanswered call hangs its run
            message = f"ctx.{one_line(request.method, 40)} failed in the host ({type(error).__name__})."
            finished(False, error=ErrorInfo(code="TOOL_ERROR", message=message))
            return CapabilityReply(ok=False, code="TOOL_ERROR", message=message)
        finished(True, answer)
        return CapabilityReply(ok=True, value_json=answer.value_json)

    async def _answer(self, arguments: Arguments, span: str) -> _Answer:
        match arguments.method:
            case "db.query" | "db.execute":
                return await self._db(arguments)
            case "images.open":
                return await self._open_image(arguments)
            case "llm.generate":
                return await self._generate(arguments, span)
            case _:
                return await self._files(arguments)

    async def _db(self, arguments: Arguments) -> _Answer:
        alias, grant = _declared(arguments, self._capabilities.databases, "databases")
        result = await db.run_statement(arguments, grant, alias, self._data, self._sql)
        return _Answer(result.value_json, len(result.value_json), result.rows)

    async def _open_image(self, arguments: Arguments) -> _Answer:
        alias, grant = _declared(arguments, self._capabilities.images, "images")
        arguments.at_most(2)
        folder = DeclaredFolder(self._data, grant.path)
        image = await images.open_image(folder, alias, arguments.text(1, "name"))
        return _Answer(to_json(self._images.add(image)), len(image.data))

    async def _files(self, arguments: Arguments) -> _Answer:
        alias, grant = _declared(arguments, self._capabilities.files, "files")
        folder = DeclaredFolder(self._data, grant.path, refused=frozenset({DATABASE_FOLDER, TOOL_FOLDER}))
        if arguments.method == "files.list":
            arguments.at_most(1)
            names = await files.list_names(folder)
            text = to_json(names)
            return _Answer(text, len(text), len(names))
        name = arguments.text(1, "name")
        if arguments.method == "files.readText":
            arguments.at_most(2)
            content = await files.read_text(folder, name)
            return _Answer(to_json(content), len(content.encode()))
        arguments.at_most(3)
        text = arguments.text(2, "text")
        _writable(alias, grant)
        return _Answer("null", await files.write_text(folder, name, text))

    async def _generate(self, arguments: Arguments, span: str) -> _Answer:
        if not self._capabilities.models:
            raise _undeclared("llm", "llm.generate")
        answer = await llm.generate(
            arguments,
            self._capabilities,
            self._images,
            self._host.models,
            parent=span,
            deadline=self._deadline,
        )
        text = to_json(answer)
        return _Answer(text, len(text))


def _parse(request: CapabilityRequest) -> tuple[Arguments, StyleEyesError | None]:
    """The call's arguments, or empty ones and why it is refused, so that a refusal is logged as well."""
    empty = Arguments(request.method, ())
    if request.method not in _METHODS:
        shown = one_line(request.method, 60)
        return empty, StyleEyesError("CAPABILITY_DENIED", f"There is no capability call {shown!r}.")
    try:
        return parse_arguments(request.method, request.args_json), None
    except StyleEyesError as error:
        return empty, error


def _started(method: str, arguments: Arguments) -> CapabilityStarted:
    if method == llm.METHOD:
        return CapabilityStarted(kind=method, target=llm.model_alias(arguments))
    target, detail = arguments.get(0), arguments.get(1)
    return CapabilityStarted(
        kind=one_line(method, 60),
        target=one_line(target, 64) if isinstance(target, str) else "",
        detail=_shortened(detail) if isinstance(detail, str) else None,
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_DETAIL else text[: _MAX_DETAIL - 1] + "…"


def _declared(arguments: Arguments, grants: Mapping[str, _Grant], kind: str) -> tuple[str, _Grant]:
    if not grants:
        raise _undeclared(kind, arguments.method)
    alias = arguments.text(0, "alias")
    grant = grants.get(alias)
    if grant is None:
        raise StyleEyesError(
            "CAPABILITY_DENIED",
            f"The tool declares no `{kind}` alias {one_line(alias, 64)!r}.",
            f"Declared: {', '.join(sorted(grants))}.",
        )
    return alias, grant


def _undeclared(kind: str, method: str) -> StyleEyesError:
    return StyleEyesError(
        "CAPABILITY_DENIED",
        f"ctx.{method} needs a capability that the tool does not declare.",
        f"Declare `capabilities.{kind}`.",
    )


def _writable(alias: str, grant: FolderGrant) -> None:
    if grant.mode != "write":
        raise StyleEyesError(
            "CAPABILITY_DENIED",
            f"The folder `{alias}` is declared for reading only.",
            'Declare it with mode: "write" to use ctx.files.writeText.',
        )


def _sentence(error: StyleEyesError) -> str:
    return f"{error.message} {error.hint}" if error.hint else error.message
