"""A loopback server that speaks Gemini's REST wire format and fails on request.

It answers `…:streamGenerateContent?alt=sse` and `…:generateContent` with scripted replies, one a
request and in order, and keeps every request for a test to look at. The shapes are those of the
public v1beta API: camelCase, errors as `google.rpc.Status` with typed details.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

JSON = dict[str, Any]
DONE: JSON = {"[DONE]": True}
"""The end mark of an OpenAI-compatible stream, which is no JSON; Gemini's has none."""

# The SDK writes some fields by their proto names; protobuf's JSON parser takes either spelling.
_PROTO_NAMES = {
    "mime_type": "mimeType",
    "parameters_json_schema": "parametersJsonSchema",
    "thinking_level": "thinkingLevel",
    "thinking_budget": "thinkingBudget",
    "function_calling_config": "functionCallingConfig",
}


def _proto_names(value: JSON) -> JSON:
    return {_PROTO_NAMES.get(key, key): inner for key, inner in value.items()}


@dataclass(frozen=True)
class Reply:
    """One scripted answer. `chunks` are responses: all of them as SSE events, or the only one as JSON.

    `hang` keeps the connection open after the last chunk without ending the response; `cut` closes
    it in the middle of the chunked body, as a lost connection does; `drop` closes it unanswered.
    """

    chunks: Sequence[JSON] = ()
    status: int = 200
    error: JSON | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    hang: bool = False
    cut: bool = False
    drop: bool = False
    raw: bytes | None = None


@dataclass
class Request:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: JSON
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client closed the connection while a reply was hanging."""

    @property
    def contents(self) -> list[JSON]:
        return list(self.body["contents"])

    @property
    def image_parts(self) -> int:
        return sum("inlineData" in part for content in self.contents for part in content["parts"])

    @property
    def config(self) -> JSON:
        return dict(self.body.get("generationConfig", {}))


class GeminiServer:
    """`replies` are used up in order; a request beyond them is a test's fault and answered 500."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.requests: list[Request] = []
        self.arrived = asyncio.Event()
        self.url = ""
        self._connections: set[asyncio.Task[None]] = set()

    def script(self, *replies: Reply) -> None:
        self.replies.extend(replies)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    def streams(self, request: Request) -> bool:
        """Whether the request asks for server-sent events."""
        return "alt=sse" in request.path

    async def close(self) -> None:
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode().strip().split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        request = Request(first.split(" ")[1], headers, json.loads(body or b"{}", object_hook=_proto_names))
        self.requests.append(request)
        self.arrived.set()
        reply = self.replies.pop(0) if self.replies else Reply(status=500, error=rpc_error(500, "unscripted"))
        if reply.drop:
            return False
        if self.streams(request) and reply.error is None and reply.raw is None:
            return await self._stream(reader, writer, request, reply)
        payload = (
            reply.raw or json.dumps(reply.error if reply.error is not None else reply.chunks[0]).encode()
        )
        if reply.hang:
            await self._wait_for_close(reader, request)
            return False
        extra = "".join(f"{k}: {v}\r\n" for k, v in reply.headers.items())
        writer.write(
            f"HTTP/1.1 {reply.status} X\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(payload)}\r\n{extra}\r\n".encode()
            + payload
        )
        await writer.drain()
        return True

    async def _stream(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: Request, reply: Reply
    ) -> bool:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for chunk in reply.chunks:
            event = b"data: " + (b"[DONE]" if chunk == DONE else json.dumps(chunk).encode()) + b"\r\n\r\n"
            writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
            await writer.drain()
        if reply.hang:
            await self._wait_for_close(reader, request)
            return False
        if reply.cut:
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    @staticmethod
    async def _wait_for_close(reader: asyncio.StreamReader, request: Request) -> None:
        try:
            await reader.read()
        finally:
            request.closed.set()


class OpenAIServer(GeminiServer):
    """The same server in OpenAI's chat completions format."""

    def streams(self, request: Request) -> bool:
        return bool(request.body.get("stream"))


@asynccontextmanager
async def gemini_server(kind: type[GeminiServer] = GeminiServer) -> AsyncIterator[GeminiServer]:
    server = kind()
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0, limit=64 * 1024 * 1024)
    host, port = listener.sockets[0].getsockname()[:2]
    server.url = f"http://{host}:{port}"
    try:
        yield server
    finally:
        listener.close()
        await server.close()


def text(words: str, *, thought: bool = False, signature: bytes | None = None) -> JSON:
    part: JSON = {"text": words}
    if thought:
        part["thought"] = True
    if signature is not None:
        part["thoughtSignature"] = base64.b64encode(signature).decode()
    return part


def call(name: str, args: JSON, *, id: str | None = None, signature: bytes | None = None) -> JSON:
    inner: JSON = {"name": name, "args": args}
    if id is not None:
        inner["id"] = id
    part: JSON = {"functionCall": inner}
    if signature is not None:
        part["thoughtSignature"] = base64.b64encode(signature).decode()
    return part


def chunk(*parts: JSON, finish: str | None = None, usage: JSON | None = None) -> JSON:
    candidate: JSON = {"index": 0}
    if parts:
        candidate["content"] = {"role": "model", "parts": list(parts)}
    if finish is not None:
        candidate["finishReason"] = finish
    response: JSON = {"candidates": [candidate], "modelVersion": "gemini-test", "responseId": "r"}
    if usage is not None:
        response["usageMetadata"] = usage
    return response


def says(words: str) -> Reply:
    """A whole short answer."""
    return Reply([chunk(text(words), finish="STOP")])


def calls(*parts: JSON) -> Reply:
    """A step that calls tools."""
    return Reply([chunk(*parts, finish="STOP")])


def rpc_error(code: int, message: str, status: str = "UNKNOWN", *details: JSON) -> JSON:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def fails(code: int, message: str, status: str = "UNKNOWN", *details: JSON, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=code, error=rpc_error(code, message, status, *details), headers=named)


def retry_info(delay: str) -> JSON:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}


def quota_failure(quota_id: str) -> JSON:
    return {
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{"quotaMetric": "generate_content", "quotaId": quota_id, "quotaValue": "20"}],
    }


def error_info(reason: str) -> JSON:
    return {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "googleapis.com",
    }
