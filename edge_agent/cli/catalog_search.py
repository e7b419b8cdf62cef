"""Searches a catalog as the agent would: by its own `search_catalog`, in the sandbox, no camera, no model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import click

from device.clock import SystemClock
from edge_agent.engine.engine import ToolEngine
from edge_agent.engine.outcome import ToolOutcome
from edge_agent.engine.ports import (
    CameraSnapshot,
    ConversationTurn,
    EngineHost,
    GenerateReply,
    GenerateRequest,
    SessionIdentity,
)
from edge_agent.engine.sandbox.sandbox import open_sandbox
from edge_agent.errors import StyleEyesError
from edge_agent.events import Spine, new_span
from edge_agent.home import AgentFolder, Home
from edge_agent.json_types import JsonValue
from edge_agent.text import one_line, sanitise

SEARCH_TOOL = "search_catalog"


class BareHost:
    """A search at a desk: no camera, no model, no conversation."""

    async def snapshot(self) -> CameraSnapshot:
        return CameraSnapshot("none", "a catalog search has no camera", None, None, None)

    def aliases(self) -> frozenset[str]:
        return frozenset({"default"})

    async def generate(self, alias: str, request: GenerateRequest, *, parent: str) -> GenerateReply:
        raise StyleEyesError(
            "MODEL_UNAVAILABLE",
            "A catalog search has no model.",
            "Use `styleeyes tools call` for such a tool.",
        )

    def recent_turns(self) -> Sequence[ConversationTurn]:
        return ()


async def search(home: Home, agent: AgentFolder, arguments: Mapping[str, JsonValue]) -> ToolOutcome:
    """One call of the agent's `search_catalog`. Raises StyleEyesError where its tools cannot be opened."""
    clock = SystemClock()
    host = BareHost()
    identity = SessionIdentity("catalog-search", "demo", agent.id, agent.id)
    sandbox = open_sandbox(os.environ)
    engine = ToolEngine(home, sandbox, Spine(clock), clock)
    try:
        session = await engine.open_session(agent, EngineHost(identity, host, host, host))
        try:
            return await session.call(SEARCH_TOOL, dict(arguments), parent=new_span("search"))
        finally:
            await session.aclose()
    finally:
        await engine.aclose()
        await sandbox.aclose()


def print_products(value: JsonValue) -> None:
    """The tool's result for a person: a line a product, why below it."""
    result: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    products: Sequence[Mapping[str, Any]] = result.get("products") or ()
    for product in products:
        price = (
            f"{product.get('price')} {product.get('currency') or ''}".strip() if product.get("price") else ""
        )
        facts = (product.get("gender"), ", ".join(product.get("colors") or ()), price)
        told = " · ".join(str(fact) for fact in facts if fact)
        photos = f"{product.get('photos', 0)} photos"
        _line(f"{product.get('styleId')}  {product.get('name')}  ({told}; {photos})")
        if product.get("why"):
            _line(f"found by {', '.join(map(str, product['why']))}", indent="    ")
    if result.get("note"):
        _line(str(result["note"]))
    if products:
        _line(f"{len(products)} of {result.get('total', len(products))}. {result.get('snapshotNote', '')}")


def _line(text: str, indent: str = "") -> None:
    click.echo(indent + one_line(sanitise(text), 400))
