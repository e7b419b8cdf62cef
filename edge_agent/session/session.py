"""A session's life: it opens camera, tools and model, runs turns, and writes down what happens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from device.camera import Camera
from device.clock import Clock
from device.errors import DeviceError
from device.sources import SourceSpec, parse_source
from device.status import CameraStatus
from edge_agent import __version__
from edge_agent.agent.calls import DeclaredTool
from edge_agent.agent.conversation import Conversation
from edge_agent.agent.loop import TurnLoop, TurnResult
from edge_agent.agent.models.protocol import ChatModel, Preparable
from edge_agent.agent.models.registry import OFFLINE, choose_model, open_model
from edge_agent.agent.tool_models import DEFAULT, ToolModels, read_aliases
from edge_agent.engine.agent_config import read_agent_config
from edge_agent.engine.engine import EngineSession, ToolEngine
from edge_agent.engine.outcome import ToolOutcome
from edge_agent.engine.ports import EngineHost, Mode, SessionIdentity
from edge_agent.engine.sandbox.sandbox import open_sandbox
from edge_agent.errors import EnvironmentLacksError, StyleEyesError
from edge_agent.events import (
    CameraChanged,
    ErrorInfo,
    Level,
    Notice,
    SessionEnded,
    SessionStarted,
    Spine,
    new_span,
)
from edge_agent.home import AgentFolder, Home
from edge_agent.json_types import JsonValue
from edge_agent.session.camera_view import CameraView
from edge_agent.session.log import SessionLog
from edge_agent.session.store import close_crashed_sessions, new_session_id
from edge_agent.session.warming import look_at_catalog
from edge_agent.text import SecretMask

_SECRET_VARIABLES = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY")
_FIRST_FRAME_S = 20.0
"""How long a question waits for the first usable frame: a slow camera opens and warms up in this."""
_LEAD_S = 0.5
"""A recording asked about at a moment is played from this much before it, so that the sharpest of a
few frames can be chosen as with a live camera."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """What a session is opened with.

    `tolerant` sessions (the app) open without a camera or a sandbox and say what is missing; others
    fail with the reason, since nobody is there to mend it meanwhile. `wait_for_model` has the model
    ready before the camera is looked at, so that no frame ages meanwhile; whoever may not need it does
    not wait. With `look_ahead` a model that can looks at the catalog's photos behind the scenes.
    """

    home: Home
    agent: AgentFolder
    source: str | None
    at: float | None = None
    loop: bool = False
    model: str | None = None
    mode: Mode = "wearer"
    tolerant: bool = False
    wait_for_model: bool = True
    look_ahead: bool = True


class Session:
    """One session. Made cheaply, opened with `open`, closed with `aclose` whatever happened."""

    def __init__(self, options: SessionOptions, env: Mapping[str, str], clock: Clock) -> None:
        self.id = new_session_id(clock)
        self.span = f"session-{self.id}"
        self.spine = Spine(clock, SecretMask(env.get(name, "").strip() for name in _SECRET_VARIABLES))
        self.camera = Camera(clock)
        self._options = options
        self._env = env
        self._clock = clock
        self._view = CameraView(self.camera)
        self._closing = contextlib.AsyncExitStack()
        self._source: SourceSpec | None = None
        self._facts: SessionStarted | None = None
        self._tools: EngineSession | None = None
        self._turns: TurnLoop | None = None
        self._turn: asyncio.Task[TurnResult] | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    # -- opening and closing ----------------------------------------------------------------------

    async def open(self) -> None:
        """Opens log, model, tools and camera, in this order, and emits SessionStarted.

        Raises StyleEyesError or DeviceError; `aclose` must be called all the same.
        """
        self._open_log()
        self._source = self._parsed_source()
        await self._tell_of_crashes()
        config = read_agent_config(self._options.agent)
        choice = choose_model(self._options.model, self._env, config.model)
        aliases = read_aliases(self._env)
        model = await self._open_model(choice.spec)
        self._closing.push_async_callback(model.aclose)
        await self._prepare(model)
        tool_models = ToolModels(model, aliases, self._open_model, self.spine, self._clock)
        self._closing.push_async_callback(tool_models.aclose)
        conversation = Conversation(self._clock)
        sandbox = open_sandbox(self._env)
        self._closing.push_async_callback(sandbox.aclose)
        engine = ToolEngine(self._options.home, sandbox, self.spine, self._clock)
        self._closing.push_async_callback(engine.aclose)
        host = EngineHost(
            identity=SessionIdentity(self.id, self._options.mode, config.id, config.name),
            camera=self._view,
            models=tool_models,
            conversation=conversation,
        )
        self._tools = await self._open_tools(engine, host)
        self._turns = TurnLoop(
            model=model,
            tools=self._tools or _NoTools(),
            camera=self._view,
            conversation=conversation,
            spine=self.spine,
            clock=self._clock,
            session_span=self.span,
            agent_name=config.name,
            instructions=config.instructions,
        )
        self._facts = SessionStarted(
            session_id=self.id,
            mode=self._options.mode,
            agent_id=config.id,
            agent_name=config.name,
            model=choice.spec,
            model_reason=choice.reason,
            source=self._source.label if self._source else "none",
            sandbox=sandbox.status.label,
            tools=self._tools.pinned if self._tools else (),
            app_version=__version__,
        )
        self.spine.emit(self._facts, span=self.span)
        self._tell_of_catalog()
        await self._open_camera()
        if self._options.look_ahead:
            self._look_ahead(model, tool_models, aliases.get(DEFAULT))

    async def aclose(self) -> None:
        """Ends the turn, closes all that was opened, ends the log. Safe to call twice."""
        self.cancel_turn()
        if self._turn is not None:
            await asyncio.wait([self._turn])
        await self._closing.aclose()

    @property
    def facts(self) -> SessionStarted:
        """What the session was opened with; only once it is open."""
        if self._facts is None:
            raise AssertionError("the session is not open")
        return self._facts

    @property
    def tools(self) -> EngineSession:
        """The enabled tools. Raises EnvironmentLacksError where the sandbox cannot run them."""
        if self._tools is None:
            raise EnvironmentLacksError(
                "SANDBOX_UNAVAILABLE", "tools are unavailable on this machine", "`styleeyes doctor` says why"
            )
        return self._tools

    # -- turns --------------------------------------------------------------------------------------

    async def wait_for_frame(self) -> bool:
        """Waits until the camera has a usable frame; for a moment of a recording, until it is reached.

        Returns whether there is one. Raises the camera's own error where none can come.
        """
        if self._source is None:
            return False
        fresh = await asyncio.to_thread(self.camera.wait_fresh, _FIRST_FRAME_S)
        if self._options.at is not None and fresh:
            await asyncio.sleep(min(self._options.at, _LEAD_S))
        if not fresh and not self._options.tolerant:
            status = self.camera.status
            raise status.error or DeviceError(
                "CAMERA_FAILED",
                f"no picture came within {_FIRST_FRAME_S:.0f} s ({status.words})",
                "check the source with `styleeyes camera check`",
            )
        return fresh

    async def ask(self, question: str, /) -> TurnResult:
        """One turn. Everything about it is an event; a failed or cancelled turn is a result."""
        if self._turns is None:
            raise AssertionError("the session is not open")
        if self._turn is not None:
            raise StyleEyesError(
                "BUSY", "a question is being answered", "wait for the answer or cancel it first"
            )
        self._view.begin_turn()
        self._idle.clear()
        self._turn = asyncio.create_task(self._turns.run(question))
        try:
            await asyncio.wait([self._turn])
            if self._turn.cancelled():
                return _cancelled(self._turns.model.id)
            return self._turn.result()
        except asyncio.CancelledError:
            self._turn.cancel()
            await asyncio.wait([self._turn])
            raise
        finally:
            self._turn = None
            self._idle.set()
            self._view.end_turn()

    def cancel_turn(self) -> None:
        """Stops the running turn and the host's work for it; nothing happens without one."""
        if self._turn is not None:
            self._turn.cancel()

    # -- inside -------------------------------------------------------------------------------------

    def _open_log(self) -> None:
        loop = asyncio.get_running_loop()

        def on_trouble(trouble: str | None) -> None:
            loop.call_soon_threadsafe(self._tell_of_log, trouble)

        try:
            log = SessionLog(self._options.home.sessions / self.id, on_trouble)
        except OSError as error:
            raise EnvironmentLacksError(
                "HOME_NOT_WRITABLE",
                f"the session log cannot be written: {error.strerror or error}",
                "free some space or choose another folder with --home",
            ) from error
        self._closing.callback(log.close)
        self._closing.callback(self.spine.subscribe(log.append, first=True))
        self._closing.callback(self._emit_end)

    def _emit_end(self) -> None:
        self.spine.emit(SessionEnded(reason="closed"), span=self.span)

    def _tell_of_log(self, trouble: str | None) -> None:
        if trouble is None:
            self._notice("info", "LOG_RECOVERED", "the session log is written again; nothing was lost")
        else:
            self._notice(
                "error",
                "LOG_NOT_WRITTEN",
                f"the session log cannot be written: {trouble}",
                "free some disk space: what happens meanwhile is kept in memory and written then",
            )

    async def _tell_of_crashes(self) -> None:
        for crashed in await asyncio.to_thread(close_crashed_sessions, self._options.home, self._clock):
            cut = " and a half-written last line, which was cut off," if crashed.damaged else ""
            self._notice(
                "warn",
                "SESSION_CRASHED",
                f"session {crashed.id} was not closed; {crashed.events} events{cut} were kept",
                f"see it with `styleeyes session show {crashed.id}`",
            )

    def _tell_of_catalog(self) -> None:
        agent = self._options.agent
        if not agent.catalog.exists():
            self._notice(
                "warn",
                "NO_CATALOG",
                f"the agent {agent.id} has no catalog, so no style can be found",
                f"make one: styleeyes catalog import FEED --to {agent.data} --photos DIR --build",
            )

    async def _open_model(self, spec: str) -> ChatModel:
        return await open_model(
            spec, env=self._env, clock=self._clock, vision_folder=self._options.home.vision
        )

    async def _prepare(self, model: ChatModel) -> None:
        """Gets the model ready, before all else or behind it."""
        if not isinstance(model, Preparable):
            return
        if self._options.wait_for_model:
            await model.prepare()
            return
        preparing = asyncio.create_task(self._prepare_behind(model))
        self._closing.push_async_callback(_ended, preparing)

    async def _prepare_behind(self, model: Preparable) -> None:
        try:
            await model.prepare()
        except StyleEyesError as error:
            self._notice("error", error.code, error.message, error.hint)

    def _look_ahead(self, model: ChatModel, tool_models: ToolModels, tools_use: str | None) -> None:
        """Begins to look at the catalog's photos behind the scenes, with the models that can."""

        async def look() -> None:
            looking = {model}
            if tools_use == OFFLINE:
                looking.add(await tool_models.opened(DEFAULT))
            for one in looking:
                await look_at_catalog(
                    one,
                    self._options.agent,
                    idle=self._idle,
                    spine=self.spine,
                    clock=self._clock,
                    parent=self.span,
                )

        self._closing.push_async_callback(_ended, asyncio.create_task(look()))

    async def _open_tools(self, engine: ToolEngine, host: EngineHost) -> EngineSession | None:
        try:
            tools = await engine.open_session(self._options.agent, host)
        except EnvironmentLacksError as error:
            if not self._options.tolerant:
                raise
            self._notice("error", error.code, error.message, error.hint)
            return None
        self._closing.push_async_callback(tools.aclose)
        self._closing.push_async_callback(_ended, asyncio.create_task(tools.warm()))
        return tools

    async def _open_camera(self) -> None:
        if self._source is None:
            return
        loop = asyncio.get_running_loop()

        def on_change(status: CameraStatus) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is gone: nobody is left to be told
                loop.call_soon_threadsafe(self._camera_changed, status)

        self._closing.callback(self.camera.subscribe(on_change))
        self._closing.push_async_callback(asyncio.to_thread, self.camera.close)
        try:
            await asyncio.to_thread(self.camera.open, self._source)
        except DeviceError as error:
            if not self._options.tolerant:
                raise
            self._notice("error", error.code, error.message, error.hint)

    def _parsed_source(self) -> SourceSpec | None:
        """What `--source` names; only its label is ever shown, since an address may hold a password."""
        if self._options.source is None:
            return None
        at = self._options.at
        lead = None if at is None else max(0.0, at - _LEAD_S)
        try:
            return parse_source(self._options.source, at=lead, loop=self._options.loop)
        except DeviceError as error:
            if not self._options.tolerant:
                raise
            self._notice("error", error.code, error.message, error.hint)
            return None

    def _camera_changed(self, status: CameraStatus) -> None:
        self.spine.emit(
            CameraChanged(
                state=status.state.value, words=status.words, source=status.source, epoch=status.epoch
            ),
            span=new_span("camera"),
            parent=self.span,
        )

    def _notice(self, level: Level, code: str, message: str, hint: str | None = None) -> None:
        notice = Notice(level=level, code=code, message=message, hint=hint)
        self.spine.emit(notice, span=new_span("notice"), parent=self.span)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


class _NoTools:
    """What the agent has where the sandbox cannot run: no tools, and a log that says why."""

    @property
    def declarations(self) -> Sequence[DeclaredTool]:
        return ()

    async def call(self, tool_id: str, input: JsonValue, *, call_id: str, parent: str) -> ToolOutcome:
        message = f"the tool {tool_id} cannot run: the sandbox is unavailable"
        return ToolOutcome(error=ErrorInfo(code="SANDBOX_UNAVAILABLE", message=message))


def _cancelled(model: str) -> TurnResult:
    return TurnResult(
        ok=False,
        answer="",
        error=ErrorInfo(code="CANCELLED", message="the question was cancelled"),
        tool_calls=(),
        frame=None,
        model=model,
    )
