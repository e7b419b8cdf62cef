"""Every key of the app, once: bindings, footer, F1 help and command palette all read this table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from textual.binding import Binding

Place = Literal["anywhere", "main screen", "prompt", "tool log", "details"]


@dataclass(frozen=True, slots=True)
class Key:
    """One key. `footer` keys are shown at the bottom; `palette` ones are commands too."""

    id: str
    keys: str
    action: str
    label: str
    tooltip: str
    place: Place
    shown_as: str
    footer: bool = False
    palette: bool = False
    priority: bool = False

    def binding(self) -> Binding:
        return Binding(
            self.keys,
            self.action,
            self.label,
            show=self.footer,
            key_display=self.shown_as,
            tooltip=self.tooltip,
            priority=self.priority,
            id=self.id,
        )


KEYS: tuple[Key, ...] = (
    Key(
        "prompt.send", "enter", "send", "Ask", "Send the question; nothing typed: What am I looking at?",
        "prompt", "Enter", footer=True,
    ),
    Key(
        "prompt.newline", "shift+enter,ctrl+j", "newline", "New line", "A new line (also Shift+Enter).",
        "prompt", "Ctrl+J",
    ),
    Key(
        "prompt.earlier", "up", "earlier", "Earlier question", "With nothing typed: the question before.",
        "prompt", "Up",
    ),
    Key(
        "main.look", "space", "look", "Look", "Ask: What am I looking at? Works wherever you are not typing.",
        "main screen", "Space", footer=True, palette=True,
    ),
    Key(
        "main.cancel", "escape", "cancel", "Stop", "Stop the running answer and all its work.",
        "main screen", "Esc", footer=True, palette=True,
    ),
    Key(
        "main.camera", "f2", "enlarge('camera')", "Camera", "Enlarge the camera picture, or put it back.",
        "main screen", "F2", palette=True,
    ),
    Key(
        "main.talk", "f3", "enlarge('talk')", "Talk", "Enlarge the conversation, or put it back.",
        "main screen", "F3", palette=True,
    ),
    Key(
        "main.log", "f4", "enlarge('log')", "Log", "Enlarge the tool log, or put it back.",
        "main screen", "F4", footer=True, palette=True,
    ),
    Key(
        "main.next", "tab", "app.focus_next", "Next part", "Move to the next part of the screen.",
        "main screen", "Tab",
    ),
    Key(
        "log.look", "space", "screen.look", "Look", "Ask: What am I looking at?",
        "tool log", "Space", footer=True,
    ),
    Key(
        "log.open", "enter", "open_details", "Details", "Show all that is known of the chosen entry.",
        "tool log", "Enter", footer=True,
    ),
    Key(
        "log.fold", "left", "fold", "Fold", "Close the chosen entry, or go to the one it belongs to.",
        "tool log", "Left",
    ),
    Key(
        "log.unfold", "right", "unfold", "Unfold", "Open the chosen entry.",
        "tool log", "Right",
    ),
    Key(
        "log.running", "r", "to_running", "Running", "Jump to what is running now.",
        "tool log", "R",
    ),
    Key(
        "log.failure", "f", "to_failure", "Failure", "Jump to the next failure further up.",
        "tool log", "F",
    ),
    Key(
        "log.follow", "end", "follow", "Follow", "Go to the newest entry and follow it.",
        "tool log", "End",
    ),
    Key(
        "log.copy", "y", "copy_json", "Copy", "Copy the chosen entry's details to the clipboard.",
        "tool log", "Y",
    ),
    Key(
        "details.close", "escape,enter,q", "app.pop_screen", "Close", "Back to the main screen.",
        "details", "Esc", footer=True,
    ),
    Key(
        "details.copy", "y", "copy", "Copy", "Copy these details to the clipboard.",
        "details", "Y", footer=True,
    ),
    Key(
        "app.help", "f1", "help", "Help", "What every key does, and what the signs mean.",
        "anywhere", "F1", footer=True, palette=True,
    ),
    Key(
        "app.palette", "ctrl+p", "command_palette", "Commands", "Find any command by its name.",
        "anywhere", "Ctrl+P",
    ),
    Key(
        "app.theme", "ctrl+t", "next_theme", "Theme", "Dark, light or high contrast.",
        "anywhere", "Ctrl+T", palette=True,
    ),
    Key(
        "app.quit", "ctrl+q", "quit", "Quit", "Leave at once; the terminal comes back as it was.",
        "anywhere", "Ctrl+Q", footer=True, palette=True, priority=True,
    ),
    Key(
        "app.interrupt", "ctrl+c", "interrupt", "Copy or quit", "Copy a selection; else stop; twice: quit.",
        "anywhere", "Ctrl+C", priority=True,
    ),
)  # fmt: skip


def bindings(place: Place) -> list[Binding]:
    """The Textual bindings of one place."""
    return [key.binding() for key in KEYS if key.place == place]


def by_place() -> Iterable[tuple[Place, list[Key]]]:
    """The table as help shows it."""
    order: tuple[Place, ...] = ("main screen", "prompt", "tool log", "details", "anywhere")
    for place in order:
        yield place, [key for key in KEYS if key.place == place]
