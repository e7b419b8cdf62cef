"""What the agent itself costs: its own part of a turn, and the Gemini SDK's, measured over loopback."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import cv2
import numpy as np

from device.clock import SystemClock
from edge_agent.agent.conversation import Conversation
from edge_agent.agent.loop import TurnLoop
from edge_agent.agent.models.pictures import PictureFitter
from edge_agent.agent.models.protocol import (
    AssistantMessage,
    ChatModel,
    Completed,
    ModelRequest,
    TextDelta,
    ToolCall,
    ToolResultsMessage,
    WaitNotice,
)
from edge_agent.engine.outcome import ToolOutcome
from edge_agent.engine.ports import CameraSnapshot, GenerateReply, GenerateRequest, HostImage
from edge_agent.events import FrameRef, Spine
from edge_agent.json_types import JsonObject, JsonValue

Figures = dict[str, dict[str, Any]]
ROUNDS = 30


def measure() -> Figures:
    """All figures of this area; needs no network and no key."""
    return {**asyncio.run(_turns()), **_pictures(), **_import_times()}


def _figure(value: float, unit: str, aim: float) -> dict[str, Any]:
    return {"value": round(value, 2), "unit": unit, "aim": aim, "ok": value <= aim}


async def _turns() -> Figures:
    image = _picture(1280, 720)
    instant = await _time_turns(lambda: _InstantModel(), image)
    server = await asyncio.start_server(_gemini, "127.0.0.1", 0, limit=1 << 24)
    port = server.sockets[0].getsockname()[1]

    from edge_agent.agent.models.gemini import GeminiModel

    def gemini() -> ChatModel:
        return GeminiModel(
            "gemini-3-flash", "no-real-key", SystemClock(), base_url=f"http://127.0.0.1:{port}"
        )

    started = time.perf_counter()
    await gemini().aclose()
    opening = (time.perf_counter() - started) * 1000
    over_loopback = await _time_turns(gemini, image)
    server.close()
    return {
        "agent.turn_own_ms": _figure(instant, "ms", 5),
        "agent.gemini_open_ms": _figure(opening, "ms", 150),
        "agent.gemini_turn_of_three_calls_ms": _figure(over_loopback, "ms", 100),
    }


async def _time_turns(open_model: Callable[[], ChatModel], image: HostImage) -> float:
    """Median ms of a turn with a search and a match, both instant."""
    clock = SystemClock()
    model = open_model()
    taken = []
    for _ in range(ROUNDS):
        loop = TurnLoop(
            model=model,
            tools=_InstantTools(),
            camera=_StillCamera(image),
            conversation=Conversation(clock),
            spine=Spine(clock),
            clock=clock,
            session_span="session-bench",
        )
        started = time.perf_counter()
        result = await loop.run("What is this jacket?")
        taken.append((time.perf_counter() - started) * 1000)
        if not result.ok or len(result.tool_calls) != 2:
            raise RuntimeError(f"the measured turn failed: {result}")
    await model.aclose()
    return median(taken)


def _pictures() -> Figures:
    taken = []
    for number in range(5):
        image = _picture(1920, 1080, seed=number)
        started = time.perf_counter()
        PictureFitter().fit(image)
        taken.append((time.perf_counter() - started) * 1000)
    return {"agent.picture_1080p_fit_ms": _figure(median(taken), "ms", 40)}


def _import_times() -> Figures:
    """In fresh processes: the loop, which every start pays, and Gemini, which only its users pay."""
    figures: Figures = {}
    for name, module, aim in (
        ("agent.import_loop_ms", "edge_agent.agent.loop", 150.0),
        ("agent.import_gemini_ms", "edge_agent.agent.models.gemini", 1500.0),
    ):
        code = (
            f"import time; t = time.perf_counter(); import {module}; print((time.perf_counter() - t) * 1000)"
        )
        taken = []
        for _ in range(3):
            done = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
            )
            taken.append(float(done.stdout))
        figures[name] = _figure(median(taken), "ms", aim)
    return figures


# --- what stands around the measured turn -------------------------------------------------------

SEARCH: JsonObject = {"query": "black jacket", "hasPhotos": True}
MATCH: JsonObject = {"styleIds": ["MJ01", "MJ02", "MJ03", "MJ04"]}
ANSWER = "In the frame from 0.1 s ago: the Proteus Jackshirt (MJ12)."


class _InstantModel:
    @property
    def id(self) -> str:
        return "instant"

    async def stream(
        self, request: ModelRequest, *, on_wait: WaitNotice
    ) -> AsyncIterator[TextDelta | Completed]:
        steps = sum(isinstance(m, ToolResultsMessage) for m in request.messages)
        if steps < 2:
            name, arguments = (("search_catalog", SEARCH), ("match_garment", MATCH))[steps]
            yield Completed(AssistantMessage("", [ToolCall(str(steps), name, arguments)]), "STOP")
            return
        yield TextDelta(ANSWER)
        yield Completed(AssistantMessage(ANSWER), "STOP")

    async def generate(self, request: GenerateRequest, *, on_wait: WaitNotice) -> GenerateReply:
        raise NotImplementedError("no tool of the measured turn calls a model")

    async def aclose(self) -> None:
        pass


@dataclass(frozen=True)
class _Declared:
    name: str
    description: str
    input_schema: JsonObject


class _InstantTools:
    declarations: Sequence[_Declared] = (
        _Declared("search_catalog", "Finds products.", {"type": "object"}),
        _Declared("match_garment", "Compares.", {"type": "object"}),
    )

    async def call(self, tool_id: str, input: JsonValue, *, call_id: str, parent: str) -> ToolOutcome:
        return ToolOutcome(value={"products": [{"styleId": f"MJ{n:02}", "name": "Jacket"} for n in range(8)]})


@dataclass(frozen=True)
class _StillCamera:
    image: HostImage

    async def snapshot(self) -> CameraSnapshot:
        ref = FrameRef(
            id="f-1",
            age_ms=33,
            width=self.image.width,
            height=self.image.height,
            sharpness=100,
            epoch=1,
            captured_at="",
        )
        return CameraSnapshot("fresh", "fresh", 33, self.image, ref)


def _picture(width: int, height: int, seed: int = 0) -> HostImage:
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 255, (height // 40, width // 40, 3), np.uint8)
    pixels = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    data = cv2.imencode(".jpg", pixels)[1].tobytes()
    return HostImage(data, "image/jpeg", width, height, "camera")


async def _gemini(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Gemini's streaming wire format: a search, a match, then an answer in three pieces."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.split("content-length:")[1].split("\r\n")[0])
            body = json.loads(await reader.readexactly(length))
            answered = sum("functionResponse" in p for c in body["contents"] for p in c["parts"])
            await _send(writer, _chunks(answered))
    except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
        writer.close()


def _chunks(answered: int) -> list[dict[str, Any]]:
    def chunk(part: dict[str, Any], **more: str) -> dict[str, Any]:
        return {"candidates": [{"content": {"role": "model", "parts": [part]}, **more}]}

    if answered < 2:
        name, args = (("search_catalog", SEARCH), ("match_garment", MATCH))[answered]
        return [chunk({"functionCall": {"name": name, "args": args}}, finishReason="STOP")]
    third = len(ANSWER) // 3
    pieces = [ANSWER[:third], ANSWER[third : 2 * third], ANSWER[2 * third :]]
    return [
        *[chunk({"text": piece}) for piece in pieces[:2]],
        chunk({"text": pieces[2]}, finishReason="STOP"),
    ]


async def _send(writer: asyncio.StreamWriter, chunks: Sequence[dict[str, Any]]) -> None:
    events = b"".join(b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n" for chunk in chunks)
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        + f"Content-Length: {len(events)}\r\n\r\n".encode()
        + events
    )
    await writer.drain()


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
