"""The Textual app: opens a session, shows it, and lets it go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual import work
from textual.actions import parse
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import TextArea

from device.clock import Clock, SystemClock
from device.errors import DeviceError
from edge_agent.errors import StyleEyesError
from edge_agent.tui import bridge
from edge_agent.tui.faults import fault_of_ours, print_fault
from edge_agent.tui.keys import KEYS, bindings
from edge_agent.tui.screens.help import HelpScreen
from edge_agent.tui.screens.main import MainScreen
from edge_agent.tui.session_port import SessionFactory, SessionPort
from edge_agent.tui.themes import INK, THEMES

CLOSE_SECONDS = 4.0
"""How long a session may take to close before it is left behind."""
QUIT_TWICE_SECONDS = 2.0


class StyleEyesApp(App[int]):
    """`session_factory` makes a session that is not open yet; the app opens and closes it.

    `on_exit` is called when the wish to end is known, before anything is taken down. `failure` holds
    the error that kept the session from opening, for the exit status.
    """

    TITLE = "StyleEyes"
    CSS_PATH = "styleeyes.tcss"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("anywhere"))
    ENABLE_COMMAND_PALETTE = True
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012  typed by the base class
        (0, "-tiny"),
        (50, "-narrow"),
        (76, "-normal"),
        (110, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [  # noqa: RUF012  typed by the base class
        (0, "-flat"),
        (15, "-short"),
        (23, "-medium"),
        (34, "-tall"),
    ]

    def __init__(
        self,
        session_factory: SessionFactory,
        *,
        clock: Clock | None = None,
        on_exit: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self._factory = session_factory
        self._on_exit_wish = on_exit
        self._clock = clock or SystemClock()
        self._session: SessionPort | None = None
        self._disconnect: Callable[[], None] = lambda: None
        self._interrupted_at = float("-inf")
        self.failure: StyleEyesError | DeviceError | None = None
        self.main = MainScreen(self._clock)
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = INK.name

    def get_default_screen(self) -> Screen[None]:
        return self.main

    def on_mount(self) -> None:
        self.main.call_after_refresh(self._open)  # the first picture of the screen does not wait for it

    @work(name="open session", exit_on_error=False)
    async def _open(self) -> None:
        try:
            # a first import of the session's rooms takes a while: not on the screen's time
            session = self._session = await asyncio.to_thread(self._factory)
            self._disconnect = bridge.connect(session.spine, self.main)
            await session.open()
            self.main.opened(session)
        except (StyleEyesError, DeviceError) as error:
            self.failure = error
        except Exception as error:  # noqa: BLE001  a named border: said on the screen, not dumped over it
            print_fault(error)
            self.failure = fault_of_ours(error)
        if self.failure is not None:
            self.main.failed(self.failure)

    def exit(
        self, result: int | None = None, return_code: int = 0, message: RenderableType | None = None
    ) -> None:
        self._on_exit_wish()
        super().exit(result, return_code, message)

    def _fatal_error(self) -> None:
        """Textual's last words would show every local variable, keys among them: ours never do."""
        if self._exception is not None:
            print_fault(self._exception)
            kind = type(self._exception).__name__
            self._exit_renderables.append(Text(f"StyleEyes stopped by a fault of its own ({kind})."))
        self._close_messages_no_wait()

    async def close_session(self) -> None:
        """Lets the session go; waits at most CLOSE_SECONDS. Safe to call twice."""
        self._disconnect()
        session, self._session = self._session, None
        if session is not None:
            async with asyncio.timeout(CLOSE_SECONDS):
                await session.aclose()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The palette: the commands of the key table, and the choice of a theme."""
        for key in KEYS:
            if key.palette:
                target = self.main if key.place == "main screen" else self
                _, name, parameters = parse(key.action)
                yield SystemCommand(
                    key.label,
                    f"{key.tooltip} ({key.shown_as})",
                    partial(getattr(target, f"action_{name}"), *parameters),
                )
        yield SystemCommand("All themes", "Choose any theme", self.action_change_theme)

    def action_help(self) -> None:
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.main.place))

    def action_next_theme(self) -> None:
        names = [theme.name for theme in THEMES]
        here = names.index(self.theme) if self.theme in names else -1
        self.theme = names[(here + 1) % len(names)]

    def action_interrupt(self) -> None:
        """Ctrl+C: copies a selection; else stops the turn; twice in two seconds quits."""
        selected = self.screen.get_selected_text()
        if isinstance(self.focused, TextArea) and self.focused.selected_text:
            selected = self.focused.selected_text
        if selected:
            self.copy_to_clipboard(selected)
            self.notify("Copied.", timeout=2)
            return
        now = self._clock.monotonic()
        if now - self._interrupted_at <= QUIT_TWICE_SECONDS:
            self.exit(0)
            return
        self._interrupted_at = now
        stopped = "Stopped. " if self.main.cancel_turn() else ""
        self.notify(f"{stopped}Press Ctrl+C again to quit.", timeout=QUIT_TWICE_SECONDS)

    async def action_quit(self) -> None:
        self.exit(0)
