"""The span tree in words: one row an entry, and its details in sections.

The tool log on the screen and `session show` print the same words; the screen only adds colour.
All glyphs are one cell wide.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from edge_agent.events import (
    CameraChanged,
    CapabilityFinished,
    CapabilityStarted,
    ErrorInfo,
    FrameRef,
    ModelFinished,
    ModelStarted,
    Notice,
    Preparing,
    TokenUsage,
    ToolFinished,
    ToolLogged,
    ToolProgressed,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from edge_agent.json_types import JsonValue
from edge_agent.session.span_tree import SpanNode, State
from edge_agent.text import one_line

GLYPHS: dict[State, str] = {"running": "…", "ok": "✓", "failed": "✗", "cancelled": "⊘", "cut off": "?"}
LINE_GLYPHS = {"debug": "·", "info": "·", "warn": "!", "error": "✗"}

MAX_CALLS = 32
"""Capability calls a tool run may make (tool contract, section 5)."""


@dataclass(frozen=True, slots=True)
class Row:
    """One entry on one line; `right` is what lines up at the right edge."""

    glyph: str
    name: str
    note: str
    right: str


@dataclass(frozen=True, slots=True)
class Section:
    """One part of an entry's details."""

    title: str
    text: str
    language: Literal["text", "json", "sql"] = "text"


def duration(ms: float) -> str:
    """`4 ms`, `412 ms`, `1.2 s`, `1 min 05 s`."""
    if ms < 999.5:
        return f"{ms:.0f} ms"
    seconds = ms / 1000
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


def preparing_words(ahead: Preparing) -> str:
    """`looking at catalog photos: 120 of 618`."""
    if ahead.done >= ahead.total:
        return f"looked at all {ahead.total} {ahead.what}"
    return f"looking at {ahead.what}: {ahead.done} of {ahead.total}"


def age(ms: float) -> str:
    """`0.4 s old`."""
    return f"{ms / 1000:.1f} s old"


def size(count: int) -> str:
    """Bytes as a person reads them: `412 B`, `3.1 KiB`, `1.2 MiB`."""
    if count < 1024:
        return f"{count} B"
    return f"{count / 1024:.1f} KiB" if count < 1024**2 else f"{count / 1024**2:.1f} MiB"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def bar(fraction: float, width: int = 8) -> str:
    """A progress bar of `width` one-cell glyphs."""
    full = round(min(max(fraction, 0.0), 1.0) * width)
    return "▰" * full + "▱" * (width - full)


def row(node: SpanNode, now: float) -> Row:
    """The entry's line at monotonic `now`."""
    glyph = GLYPHS[node.state]
    right = duration(node.elapsed_ms(now))
    note = _note(node)
    match node.start:
        case TurnStarted(question=question):
            return Row(glyph, one_line(question), note, right)
        case ModelStarted():
            return Row(glyph, "model", note, right)
        case ToolStarted(tool=tool):
            return Row(glyph, tool, note, right)
        case CapabilityStarted(kind=kind):
            return Row(glyph, kind, note, right)
        case ToolLogged(level=level, text=text):
            return Row(LINE_GLYPHS[level], "log", one_line(text), "")
        case Notice(level=level, message=message, hint=hint):
            return Row(LINE_GLYPHS[level], "note", one_line(f"{message} {hint or ''}"), "")
        case CameraChanged(words=words):
            return Row(LINE_GLYPHS["info"], "camera", one_line(words), "")
        case Preparing() as ahead:
            return Row(LINE_GLYPHS["info"], "ahead", preparing_words(ahead), "")
        case _:
            return Row(glyph, node.kind, note, right)


def _note(node: SpanNode) -> str:
    parts: list[str] = []
    if node.running and node.progress is not None:
        parts.append(_progress(node.progress))
    if node.running and node.waiting is not None:
        parts.append(f"waiting {node.waiting.seconds:.0f} s: {one_line(node.waiting.reason)}")
    if node.error is not None:
        parts.append(f"{node.error.code}: {one_line(node.error.message)}")
    elif node.state in ("cancelled", "cut off"):
        parts.append(node.state)
    match node.start:
        case ModelStarted(model=model, images=images):
            parts += [model, *([plural(images, "image")] if images else [])]
        case ToolStarted(frame=frame) | TurnStarted(frame=frame) if frame is not None:
            parts.append(f"frame {age(frame.age_ms)}")
        case ToolStarted() | TurnStarted():
            parts.append("no frame")
        case CapabilityStarted(target=target, detail=detail):
            parts += [part for part in (target, one_line(detail or "")) if part]
    match node.finish:
        case ModelFinished(usage=usage, finish_reason=reason) if node.error is None:
            parts += [part for part in (_tokens(usage), reason or "") if part]
        case CapabilityFinished(rows=rows, bytes=count) if node.error is None:
            if rows is not None:
                parts.insert(0, plural(rows, "row"))
            elif count is not None:
                parts.insert(0, size(count))
    if node.kind == "tool" and node.capability_calls:
        parts.append(f"{node.capability_calls}/{MAX_CALLS} calls")
    if node.left_out:
        parts.append(f"{node.left_out} more not shown")
    return " · ".join(parts)


def _progress(progress: ToolProgressed) -> str:
    words = f"{bar(progress.fraction)} {progress.fraction * 100:.0f} %"
    return f"{words} {one_line(progress.message)}" if progress.message else words


def _tokens(usage: TokenUsage) -> str:
    if usage.input is None and usage.output is None:
        return ""
    return f"{usage.input or 0}→{(usage.output or 0) + (usage.thinking or 0)} tokens"


def details(node: SpanNode) -> tuple[Section, ...]:
    """All that the log knows of an entry, most wanted first."""
    sections: list[Section] = []
    if node.error is not None:
        sections.append(Section("Error", error_words(node.error)))
    match node.start:
        case TurnStarted(question=question, frame=frame, camera=camera):
            sections.append(Section("Question", question))
            sections.append(Section("Frame", frame_words(frame) if frame else f"none: {camera}"))
        case ModelStarted(alias=alias, model=model, purpose=purpose, images=images, prompt=prompt):
            asked_by = "the agent's turn" if purpose == "turn" else "a tool"
            sections.append(
                Section("Model", f"{model} (alias {alias}), for {asked_by}, {plural(images, 'image')}")
            )
            sections.append(Section("Prompt", prompt))
        case ToolStarted(input=given, frame=frame, source_hash=source_hash, call_id=call_id):
            sections.append(Section("Input", pretty(given), "json"))
            sections.append(Section("Frame", frame_words(frame) if frame else "none"))
            sections.append(Section("Call", f"{call_id}\nsource {source_hash[:16]}"))
        case CapabilityStarted(kind=kind, target=target, detail=detail):
            sections.append(Section("Capability", f"{kind} {target}".strip()))
            if detail:
                sql = kind.startswith("db.")
                sections.append(Section("SQL" if sql else "Detail", detail, "sql" if sql else "text"))
        case ToolLogged(level=level, text=text, data=data):
            sections.append(Section(f"Log line ({level})", text))
            if data is not None:
                sections.append(Section("Data", pretty(data), "json"))
        case Notice(level=level, code=code, message=message, hint=hint):
            sections.append(Section(f"Note ({level}, {code})", f"{message}\n{hint or ''}".strip()))
        case CameraChanged(state=state, words=words, source=source, epoch=epoch):
            sections.append(Section("Camera", f"{words}\nstate {state}, source {source}, epoch {epoch}"))
        case Preparing() as ahead:
            sections.append(Section("Looking ahead", preparing_words(ahead)))
    match node.finish:
        case TurnFinished(answer=answer) if answer:
            sections.insert(1, Section("Answer", answer))
        case ToolFinished(ok=True, result=result):
            sections.insert(0, Section("Result", pretty(result), "json"))
        case ModelFinished(usage=usage, finish_reason=reason):
            counts = (("input", usage.input), ("output", usage.output), ("thinking", usage.thinking))
            known = ", ".join(f"{name} {n}" for name, n in counts if n is not None)
            sections.append(
                Section("Usage", f"tokens: {known or 'not said'}\nfinished: {reason or 'not said'}")
            )
        case CapabilityFinished(rows=rows, bytes=count):
            figures = [plural(rows, "row") if rows is not None else "", size(count) if count else ""]
            if any(figures):
                sections.append(Section("Gave", ", ".join(part for part in figures if part)))
    sections.append(Section("Time", _time_words(node)))
    return tuple(sections)


def _time_words(node: SpanNode) -> str:
    if node.kind == "line":
        return node.wall
    took = "still running" if node.running else f"took {duration(node.elapsed_ms(node.began))}"
    return f"{node.wall}, {took}"


def error_words(error: ErrorInfo) -> str:
    """Code, sentence, place in the author's file, and what to do."""
    where = f" (line {error.line}, column {error.column or 1})" if error.line is not None else ""
    return f"{error.code}: {error.message}{where}" + (f"\n{error.hint}" if error.hint else "")


def frame_words(frame: FrameRef) -> str:
    sharp = "" if frame.sharpness is None else f", sharpness {frame.sharpness:.3g}"
    return (
        f"{frame.id}, {age(frame.age_ms)} when taken\n"
        f"{frame.width}×{frame.height}{sharp}, epoch {frame.epoch}, {frame.captured_at}"
    )


def pretty(value: JsonValue) -> str:
    """JSON for people: indented, text unescaped."""
    return json.dumps(value, ensure_ascii=False, indent=2)
