"""`styleeyes camera`: which cameras there are, and a health report of one source."""

from __future__ import annotations

from dataclasses import asdict

import click

from device.discovery import CameraDevice, DeviceTree
from device.health import HealthReport, check_health
from edge_agent.cli.failure import failures, say, write_json_line
from edge_agent.json_types import JsonObject, JsonValue
from edge_agent.text import one_line, sanitise


@click.group()
def camera() -> None:
    """Which cameras there are, and how well one works.

    \b
    Examples:
      styleeyes camera list
      styleeyes camera check usb
      styleeyes camera check rtsp://user:password@192.168.1.20/stream --seconds 30
    """


@camera.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line on stdout.")
def list_cameras(as_json: bool) -> None:
    """Lists the cameras that are plugged in: what to type, name, stable id, modes.

    Nothing is probed by trying: metadata nodes are left out by what they say of themselves.
    """
    with failures(json_output=as_json):
        cameras = DeviceTree().cameras(with_modes=True)
        if as_json:
            for found in cameras:
                write_json_line({"type": "camera", **_camera_json(found)})
            write_json_line({"type": "result", "ok": True, "cameras": len(cameras)})
            return
        if not cameras:
            say("no camera was found")
            say("  → plug one in, or use --source synthetic, a video file or images:DIR")
        for found in cameras:
            click.echo(sanitise(_camera_text(found)))


@camera.command()
@click.argument("source")
@click.option("--seconds", default=10.0, show_default=True, type=click.FloatRange(0.5, 600), help="How long.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line on stdout.")
def check(source: str, seconds: float, as_json: bool) -> None:
    """Watches SOURCE for a while and reports on its health, with advice.

    SOURCE is usb, usb:N, a /dev/… path, a video file, an rtsp:// or http(s):// stream, images:DIR or
    synthetic. Exit status 0 means that it works, with advice or without.
    """
    from device.camera import Camera
    from device.clock import SystemClock
    from device.sources import parse_source

    with failures(json_output=as_json):
        spec = parse_source(source)
        clock = SystemClock()
        say(f"watching {spec.label} for {seconds:g} s …")
        report = check_health(Camera(clock), spec, clock, seconds=seconds)
        if as_json:
            write_json_line({"type": "result", "ok": True, **_report_json(report)})
        else:
            click.echo(sanitise(_report_text(report)))


def _camera_json(found: CameraDevice) -> JsonObject:
    modes: list[JsonValue] = [
        {"fourcc": mode.fourcc, "width": mode.width, "height": mode.height, "fps": mode.fps}
        for mode in found.modes
    ]
    return {
        "source": found.selector,
        "name": found.name,
        "stableId": found.stable_id,
        "node": str(found.node),
        "allowed": found.allowed,
        "modes": modes,
    }


def _camera_text(found: CameraDevice) -> str:
    lines = [f"{found.selector}  {one_line(found.name)}", f"    {found.node}  {found.stable_id}"]
    if not found.allowed:
        lines.append("    not allowed for this user: sudo usermod -aG video $USER, then log in again")
    by_format: dict[str, list[str]] = {}
    for mode in found.modes:
        rate = "" if mode.fps is None else f"@{mode.fps:g}"
        by_format.setdefault(mode.fourcc, []).append(f"{mode.width}x{mode.height}{rate}")
    lines += [f"    {fourcc}: {', '.join(sizes)}" for fourcc, sizes in by_format.items()]
    return "\n".join(lines)


def _report_json(report: HealthReport) -> JsonObject:
    facts = asdict(report)
    mode = report.mode
    shown: dict[str, JsonValue] = {
        "source": report.source,
        "asked": mode.asked if mode is not None and mode.asked else None,
        "mode": None if mode is None else str(mode),
        "states": list(report.states),
        "advice": list(report.advice),
    }
    for key, value in facts.items():
        if key not in ("source", "mode", "states", "advice"):
            first, *others = key.split("_")
            shown[first + "".join(other.capitalize() for other in others)] = (
                round(value, 3) if isinstance(value, float) else value
            )
    return shown


def _report_text(report: HealthReport) -> str:
    mode = report.mode
    rows = [
        ("asked for", mode.asked if mode is not None and mode.asked else "-"),
        ("gives", "-" if mode is None else str(mode)),
        ("first picture", f"{report.first_picture_ms:.0f} ms after opening"),
        (
            "rate",
            f"{report.fps:.1f} frames/s, jitter {report.jitter_ms:.1f} ms, "
            f"longest gap {report.longest_gap_ms:.0f} ms",
        ),
        ("frames", f"{report.received} came, {report.lost} lost, {report.repeated} exact repeats"),
        ("reconnects", str(report.reconnects)),
        ("exposure", f"{report.exposure} (brightness {report.brightness:.0f} of 255)"),
        ("sharpness", f"{report.sharpness:.1f}"),
        ("age", f"{report.age_p99_ms:.0f} ms at most in 99 of 100 looks"),
        ("processor", f"{report.cpu_share:.0%} of a core"),
        ("states", " → ".join(report.states)),
    ]
    lines = [f"{report.source}: {'healthy' if report.healthy else 'works, but see below'}"]
    lines += [f"  {name:<14}{value}" for name, value in rows]
    lines += [f"  → {advice}" for advice in report.advice]
    return "\n".join(lines)
