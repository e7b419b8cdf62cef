"""The key table: complete, unambiguous, and the source of help."""

from __future__ import annotations

from collections import Counter

from rich.cells import cell_len

from edge_agent.session.span_text import GLYPHS
from edge_agent.tui.keys import KEYS, bindings
from tests.tui.screen import opened, text, until
from tests.tui.scripted_session import ScriptedSession, StillClock


def test_every_key_has_id_label_and_tooltip_of_its_own() -> None:
    assert max(Counter(key.id for key in KEYS).values()) == 1
    assert all(key.label and key.tooltip and key.shown_as for key in KEYS)
    assert all("[" not in key.tooltip + key.label for key in KEYS), "tooltips are markup to Textual"


def test_no_key_means_two_things_in_one_place() -> None:
    pressed = Counter((key.place, single) for key in KEYS for single in key.keys.split(","))
    assert max(pressed.values()) == 1


async def test_help_tells_every_key() -> None:
    async with opened(ScriptedSession(StillClock()), (120, 60)) as (app, pilot):
        await pilot.press("f1")
        await until(pilot, lambda: "In the tool log" in text(app))
        told = text(app)
    assert all(key.shown_as in told and key.tooltip in told for key in KEYS)


def test_bindings_carry_the_tables_words() -> None:
    for binding in bindings("anywhere"):
        key = next(key for key in KEYS if key.id == binding.id)
        assert (binding.description, binding.tooltip, binding.key_display) == (
            key.label,
            key.tooltip,
            key.shown_as,
        )


def test_signs_are_one_cell_wide() -> None:
    assert all(cell_len(glyph) == 1 for glyph in [*GLYPHS.values(), *"●◌◐■○◆◇▰▱▸·!"])
