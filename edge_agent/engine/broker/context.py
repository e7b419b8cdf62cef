"""What `ctx` shows without a call: time, identity, recent turns, the camera at the tool's start."""

from __future__ import annotations

from dataclasses import dataclass

from device.clock import Clock, iso_utc
from edge_agent.engine.broker.capabilities import Capabilities
from edge_agent.engine.broker.image_table import ImageTable
from edge_agent.engine.broker.limits import FRESH_SECONDS, MAX_RECENT_TURNS
from edge_agent.engine.broker.requests import to_json
from edge_agent.engine.ports import CameraPort, ConversationPort, EngineHost
from edge_agent.events import FrameRef
from edge_agent.json_types import JsonObject, JsonValue

_FRESH_MS = FRESH_SECONDS * 1000


@dataclass(frozen=True, slots=True)
class RunContext:
    """`json` is what the sandbox builds `ctx` from; `frame` is the camera frame that the run may use."""

    json: str
    frame: FrameRef | None


async def open_context(
    capabilities: Capabilities, host: EngineHost, images: ImageTable, clock: Clock
) -> RunContext:
    """Takes the run's one camera snapshot, if declared, and lists what else `ctx` shows.

    The snapshot's handle goes into `images` and stays good until the run ends, which its deadline
    puts at most 120 s later: freshness is judged once, here, so that a tool which searches before it
    compares still speaks of the moment it was asked about. Its age at the start is in the handle.
    """
    frame: FrameRef | None = None
    camera: JsonValue = None
    if capabilities.camera:
        camera, frame = await _camera(host.camera, images)
    identity = host.identity
    context: dict[str, JsonValue] = {
        "now": iso_utc(clock.wall()),
        "agent": {"id": identity.agent_id, "name": identity.agent_name},
        "session": {"id": identity.session_id, "mode": identity.mode},
        "recentTurns": _turns(host.conversation) if capabilities.conversation else None,
        "camera": camera,
        "capabilities": list(capabilities.members),
    }
    return RunContext(to_json(context), frame)


async def _camera(camera: CameraPort, images: ImageTable) -> tuple[JsonObject, FrameRef | None]:
    snapshot = await camera.snapshot()
    status: JsonObject = {
        "state": snapshot.state,
        "ageMs": None if snapshot.age_ms is None else round(snapshot.age_ms),
        "reason": snapshot.reason,
    }
    fresh = snapshot.state == "fresh" and snapshot.ref is not None and snapshot.ref.age_ms <= _FRESH_MS
    if snapshot.image is None or snapshot.ref is None or not fresh:
        return {"frame": None, "status": status}, None
    handle = images.add(
        snapshot.image, {"ageMs": round(snapshot.ref.age_ms), "capturedAt": snapshot.ref.captured_at}
    )
    return {"frame": handle, "status": status}, snapshot.ref


def _turns(conversation: ConversationPort) -> list[JsonValue]:
    newest = list(conversation.recent_turns())[-MAX_RECENT_TURNS:]
    return [{"role": turn.role, "text": turn.text, "at": turn.at} for turn in newest]
