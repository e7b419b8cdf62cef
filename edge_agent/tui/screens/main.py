"""The main screen: camera and conversation above, tool log and details below, prompt at the foot."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Static

from device.clock import Clock
from device.errors import DeviceError
from edge_agent.errors import StyleEyesError
from edge_agent.events import ErrorInfo, ToolStarted
from edge_agent.session.span_text import MAX_CALLS, duration, error_words
from edge_agent.session.span_tree import Change, SpanNode, SpanTree
from edge_agent.text import sanitise
from edge_agent.tui import bridge
from edge_agent.tui.cells import steady
from edge_agent.tui.faults import fault_of_ours, print_fault
from edge_agent.tui.keys import Place, bindings
from edge_agent.tui.screens.detail import DetailScreen
from edge_agent.tui.verdict import MATCH_TOOL, SEARCH_TOOL, Product, products_in, verdict_in
from edge_agent.tui.widgets.camera_panel import CameraPanel
from edge_agent.tui.widgets.conversation import Conversation
from edge_agent.tui.widgets.detail import DetailPane, node_text
from edge_agent.tui.widgets.prompt import Prompt
from edge_agent.tui.widgets.span_log import SpanLog
from edge_agent.tui.widgets.status_bar import StatusBar

if TYPE_CHECKING:
    from edge_agent.tui.session_port import SessionPort

LOOK_QUESTION = "What am I looking at?"
REDRAWS_PER_SECOND = 10
TICK_EVERY = 5
"""Redraws between two updates of running durations: twice a second."""
PANELS = ("camera", "talk", "log")


class MainScreen(Screen[None]):
    """Folds events as they arrive and draws what changed at most ten times a second."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("main screen"))

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self.spans = SpanTree()
        self._session: SessionPort | None = None
        self._changed: dict[str, SpanNode] = {}
        self._removed: dict[str, SpanNode] = {}
        self._products: dict[str, Product] = {}
        self._asking = False
        self._redraws = 0
        self._welcome_trouble: str | None = None
        self._status, self._camera, self._talk = StatusBar(), CameraPanel(clock), Conversation()
        self._log, self._detail, self._prompt = SpanLog(clock), DetailPane(), Prompt()

    def compose(self) -> ComposeResult:
        yield self._status
        with Horizontal(id="above"):
            yield self._camera
            yield self._talk
        with Horizontal(id="below"):
            yield self._log
            yield self._detail
        yield self._prompt
        yield Footer(compact=True, show_command_palette=False)
        yield Static(
            Content("StyleEyes needs at least 50 columns and 15 rows: please enlarge this window."),
            id="too-small",
        )

    def on_mount(self) -> None:
        self._talk.welcome(
            Content.assemble(
                ("Starting…\n", "bold $primary"),
                "Opening the camera, the tools and the model. This takes a moment.",
            )
        )
        self._prompt.focus()
        self.set_interval(1 / REDRAWS_PER_SECOND, self.redraw)

    # The session -------------------------------------------------------------------------------

    def opened(self, session: SessionPort) -> None:
        """The session is open: watch its camera and say what to do."""
        self._session = session
        facts = session.facts
        self._camera.watch_camera(session.camera)
        self._status.show_facts(facts)
        self._talk.model = facts.model
        self._show_activity()

    def _show_welcome(self, session: SessionPort) -> None:
        """The source; and until something was asked, what to do here and what is missing."""
        camera = session.camera
        trouble = "" if camera.newest() is not None else f"No picture yet: {camera.status.words}"
        self._status.show_source(camera.status.source)
        if self.spans.turns or trouble == self._welcome_trouble:
            return
        self._welcome_trouble = trouble
        lines: list[Content | tuple[str, str]] = [
            ("Ask about what the camera sees.\n", "bold $primary"),
            Content.assemble(
                ("Enter", "bold $secondary"), " with nothing typed asks ", (LOOK_QUESTION, "italic"),
                " Type for anything else. ", ("F1", "bold $secondary"), " helps.",
            ),
        ]  # fmt: skip
        if session.facts.model == "offline":
            lines.append((steady(f"\nThe offline model answers: {session.facts.model_reason}."), "$quiet"))
        if trouble:
            lines.append((steady(sanitise(f"\n{trouble}")), "$warning"))
        self._talk.welcome(Content.assemble(*lines))

    def failed(self, error: StyleEyesError | DeviceError) -> None:
        """The session did not open; the screen stays so that the reason can be read."""
        self._camera.stop("The session did not open.")
        self._status.show_activity("✗ not started", "bold $error")
        self._talk.start_failed(_words_of(error))

    @property
    def ready(self) -> bool:
        """Whether a question can be asked."""
        return self._session is not None

    @property
    def drawn(self) -> bool:
        """Whether everything that has been folded is on the screen."""
        return not self._changed and not self._removed

    # Events, through the bridge ------------------------------------------------------------------

    def on_logged(self, message: bridge.Logged) -> None:
        self._note(self.spans.apply(message.event))

    def _note(self, change: Change) -> None:
        for node in change.removed:
            self._changed.pop(node.id, None)
            self._removed[node.id] = node
        for node in change.changed:
            if node.parent is not None:
                self._changed.setdefault(node.id, node)

    def on_facts_known(self, message: bridge.FactsKnown) -> None:
        self._status.show_facts(message.facts)
        self._talk.model = message.facts.model

    def on_camera_moved(self, message: bridge.CameraMoved) -> None:
        self._camera.say(message.change.words)

    def on_noticed(self, message: bridge.Noticed) -> None:
        self._talk.noticed(message.notice)

    def on_prepared(self, message: bridge.Prepared) -> None:
        self._status.show_ahead(message.ahead)

    def on_asked(self, message: bridge.Asked) -> None:
        self._products = {}
        self._talk.asked(message.turn, message.question, message.at)
        self._show_activity()

    def on_answer_grew(self, message: bridge.AnswerGrew) -> None:
        self._talk.grew(message.turn, message.text)

    def on_answered(self, message: bridge.Answered) -> None:
        self._talk.answered(message.turn, message.answer, message.error, message.ms)
        self._show_activity()

    def on_tool_returned(self, message: bridge.ToolReturned) -> None:
        node = self.spans.node(message.span)
        tool = node.start.tool if node is not None and isinstance(node.start, ToolStarted) else ""
        if tool == SEARCH_TOOL:
            self._products |= products_in(message.body.result)
        elif tool == MATCH_TOOL and (verdict := verdict_in(message.body.result)) is not None:
            product = self._products.get(verdict.style_id or "")
            self._talk.matched(verdict, product)

    # Drawing -------------------------------------------------------------------------------------

    def redraw(self) -> None:
        """Draws what changed since the last time; costs next to nothing when nothing did."""
        self._redraws += 1
        if self._changed or self._removed:
            changed, removed = list(self._changed.values()), list(self._removed.values())
            self._changed, self._removed = {}, {}
            self._log.take(changed, removed)
        elif self._redraws % TICK_EVERY == 0:
            self._log.tick()
        self._talk.flush(self._doing())
        if (subject := self._log.subject) is not None:
            self._detail.show(subject, self._clock.monotonic())
        if self._redraws % TICK_EVERY == 0:
            self._show_activity()

    def _doing(self) -> str:
        """What the running turn is at, in a few words."""
        turn = self.spans.turns[-1] if self.spans.turns else None
        if turn is None or not turn.running:
            return ""
        at_work = self._log.running
        for node in at_work:
            if node.waiting is not None:
                return f"waiting {node.waiting.seconds:.0f} s: {node.waiting.reason}"
        tools = [node.start.tool for node in at_work if isinstance(node.start, ToolStarted)]
        return f"{', '.join(tools)}…" if tools else "thinking…"

    def _show_activity(self) -> None:
        if self._session is None:
            return
        self._show_welcome(self._session)
        turn = self.spans.turns[-1] if self.spans.turns else None
        if turn is not None and turn.running:
            now = self._clock.monotonic()
            tools = [child for child in turn.children if child.kind == "tool"]
            calls = f" · {tools[-1].capability_calls}/{MAX_CALLS} calls" if tools else ""
            self._status.show_activity(
                f"… {self._doing().rstrip('…')} · {duration(turn.elapsed_ms(now))}{calls}", "bold $warning"
            )
        elif turn is not None and turn.finish is not None:
            style = "bold $success" if turn.state == "ok" else "bold $foreground"
            self._status.show_activity(f"✓ ready · last {duration(turn.elapsed_ms(turn.began))}", style)
        else:
            self._status.show_activity("✓ ready", "bold $success")

    # What the wearer does --------------------------------------------------------------------------

    def on_prompt_sent(self, message: Prompt.Sent) -> None:
        if self.ask(message.text or LOOK_QUESTION):
            self._prompt.accept()

    def action_look(self) -> None:
        self.ask(LOOK_QUESTION)

    def ask(self, question: str) -> bool:
        """Starts a turn; False, and the reason in words, when that cannot be now."""
        if self._session is None:
            self.notify("Still starting: ask again in a moment.", timeout=3)
            return False
        if self._asking:
            self.notify("Still answering: Esc stops it.", timeout=3)
            return False
        self._set_asking(True)
        self._run_turn(self._session, question)
        return True

    @work(group="turn", exit_on_error=False)
    async def _run_turn(self, session: SessionPort, question: str) -> None:
        try:
            await session.ask(question)
        except StyleEyesError as error:
            self._talk.trouble(_words_of(error))
        except Exception as error:  # noqa: BLE001  a named border: the screen outlives any one turn
            print_fault(error)
            self._talk.trouble(_words_of(fault_of_ours(error)))
        finally:
            self._set_asking(False)

    def _set_asking(self, asking: bool) -> None:
        self._asking = asking
        self.refresh_bindings()  # composes the footer anew, so never more often than needed

    def cancel_turn(self) -> bool:
        """Stops the running turn; False when there is none."""
        if not self._asking or self._session is None:
            return False
        self._session.cancel_turn()
        return True

    @property
    def enlarged(self) -> str | None:
        return next((name for name in PANELS if self.has_class(f"-enlarge-{name}")), None)

    def action_cancel(self) -> None:
        if not self.cancel_turn() and (name := self.enlarged) is not None:
            self.action_enlarge(name)

    def action_enlarge(self, name: str) -> None:
        """Gives one panel the whole body, or puts it back."""
        wanted = None if self.enlarged == name else name
        for panel in PANELS:
            self.set_class(panel == wanted, f"-enlarge-{panel}")
        if wanted in ("log", "talk"):
            self.query_one(f"#{wanted}").focus()
        elif wanted is None:
            self._prompt.focus()
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "look" and isinstance(self.focused, Prompt):
            return False
        if action == "cancel":
            return True if self._asking or self.enlarged is not None else None
        return super().check_action(action, parameters)

    def on_span_log_chosen(self, message: SpanLog.Chosen) -> None:
        self.app.push_screen(DetailScreen(message.node, self._clock.monotonic()))

    def on_span_log_copy_asked(self, message: SpanLog.CopyAsked) -> None:
        self.app.copy_to_clipboard(node_text(message.node, self._clock.monotonic()))
        self.notify("Copied.", timeout=2)

    @property
    def place(self) -> Place:
        """Where the reader is, for help."""
        if isinstance(self.focused, SpanLog):
            return "tool log"
        return "prompt" if isinstance(self.focused, Prompt) else "main screen"


def _words_of(error: StyleEyesError | DeviceError) -> str:
    return error_words(ErrorInfo(code=error.code, message=error.message, hint=error.hint))
