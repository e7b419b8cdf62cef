"""The live tool log: the span tree as rows, one line an entry, durations at the right edge."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Self

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from rich.text import Span, Text, TextType
from textual.binding import BindingType
from textual.cache import LRUCache
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from device.clock import Clock
from edge_agent.session.span_text import Row, row
from edge_agent.session.span_tree import SpanNode, State
from edge_agent.tui.cells import steady
from edge_agent.tui.keys import bindings

EMPTY_WORDS = "Every step of an answer appears here: tools, queries, photos, model calls."
_EMPTY = Text("")
_STATE_CLASS: dict[State, str] = {
    "running": "span-log--running",
    "ok": "span-log--ok",
    "failed": "span-log--failed",
    "cancelled": "span-log--cancelled",
    "cut off": "span-log--cancelled",
}


class SpanLog(Tree[SpanNode]):
    """Rows of the tool log. `take` is called at most ten times a second with what changed.

    It follows the newest entry only while it is at the bottom and nothing has been chosen; a reader
    who moved up is left alone. A tree of rows, not of widgets: its cost is that of the rows in view.
    """

    BORDER_TITLE = "Tool log"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("tool log"))
    COMPONENT_CLASSES: ClassVar[set[str]] = {*_STATE_CLASS.values(), "span-log--quiet", "span-log--name"}

    class Chosen(Message):
        """The reader wants all of an entry."""

        def __init__(self, node: SpanNode) -> None:
            super().__init__()
            self.node = node

    class CopyAsked(Message):
        def __init__(self, node: SpanNode) -> None:
            super().__init__()
            self.node = node

    def __init__(self, clock: Clock) -> None:
        super().__init__("", id="log")
        self.show_root = False
        self.auto_expand = False
        self.guide_depth = 3
        self._clock = clock
        self._rows: dict[str, TreeNode[SpanNode]] = {}
        self._running_spans: dict[str, SpanNode] = {}
        self._newest_tool: SpanNode | None = None
        self._chosen = False
        self._looks: dict[str, Style] = {}
        self._strips: LRUCache[tuple[object, ...], Strip] = LRUCache(512)

    def notify_style_update(self) -> None:
        self._looks.clear()
        self._strips.clear()
        super().notify_style_update()

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> Self:
        """Its place on the screen never depends on its rows, so they never ask for a new layout."""
        return super().refresh(*regions, repaint=repaint, layout=False, recompose=recompose)

    def on_mount(self) -> None:
        self.anchor()

    def process_label(self, label: TextType) -> Text:
        """Labels are made from the entries when drawn; what Tree would keep is not used."""
        return _EMPTY

    def get_label_width(self, node: TreeNode[SpanNode]) -> int:
        """Rows are cut to the widget, so there is nothing to scroll sideways."""
        return 1

    @property
    def entries(self) -> int:
        """How many entries it holds."""
        return len(self._rows)

    @property
    def running(self) -> tuple[SpanNode, ...]:
        """The entries that have begun and not ended, as last drawn."""
        return tuple(self._running_spans.values())

    @property
    def following(self) -> bool:
        """Whether new entries scroll into view."""
        return not self._anchor_released

    @property
    def subject(self) -> SpanNode | None:
        """The entry whose details matter: the chosen one, else the newest tool run."""
        if self._chosen and self.cursor_node is not None:
            return self.cursor_node.data
        return self._newest_tool

    def take(self, changed: Iterable[SpanNode], removed: Iterable[SpanNode]) -> None:
        """Brings the rows up to date; `changed` parents come before their children."""
        for node in removed:
            self._running_spans.pop(node.id, None)
            if (gone := self._rows.pop(node.id, None)) is not None and gone in self.root.children:
                gone.remove()
        for node in changed:
            self._take_one(node)

    def _take_one(self, node: SpanNode) -> None:
        if node.running and node.kind != "session":
            self._running_spans[node.id] = node
        else:
            self._running_spans.pop(node.id, None)
        if node.kind == "tool" and (self._newest_tool is None or node.began >= self._newest_tool.began):
            self._newest_tool = node
        if node.parent is None:
            return
        known = self._rows.get(node.id)
        if known is not None:
            known.refresh()
            return
        above = self.root if node.parent.kind == "session" else self._rows.get(node.parent.id)
        if above is None:
            return
        if node.kind == "turn" and not self._chosen:
            for earlier in self.root.children:
                if earlier.is_expanded:
                    earlier.collapse()
        above.allow_expand = True
        leaf = node.kind in ("line", "capability")
        self._rows[node.id] = above.add("", node, expand=True, allow_expand=not leaf)

    def tick(self) -> None:
        """Draws the running entries anew, for their durations."""
        for node_id in self._running_spans:
            if (known := self._rows.get(node_id)) is not None and known.line >= 0:
                known.refresh()

    def render_line(self, y: int) -> Strip:
        if self._rows:
            return self._row_strip(y)
        if y != 0:
            return super().render_line(y)
        quiet = self.rich_style + self.get_component_rich_style("span-log--quiet", partial=True)
        words = Strip([Segment(_cut(EMPTY_WORDS, self.size.width), quiet)])
        return words.adjust_cell_length(self.size.width, self.rich_style)

    def _row_strip(self, y: int) -> Strip:
        """The row at `y`, from the cache while nothing in it has changed.

        Tree keeps rows only until the next entry is added anywhere, which here is at every update.
        """
        line = y + self.scroll_offset.y
        node = self.get_node_at_line(line)
        if node is None or node.data is None or node.data.running:
            return super().render_line(y)
        lasts, above = [], node
        while above.parent is not None:
            lasts.append(above.is_last)
            above = above.parent
        key = (
            line,
            node.data.id,
            node.data.revision,
            tuple(lasts),
            self.size,
            node.is_expanded,
            line == self.cursor_line,
            self.has_focus,
            self.hover_line,
            bool(node.children),
        )
        strip = self._strips.get(key)
        if strip is None:
            strip = self._strips[key] = super().render_line(y)
        return strip

    def render_label(self, node: TreeNode[SpanNode], base_style: Style, style: Style) -> Text:
        entry = node.data
        if entry is None:
            return _EMPTY
        depth = entry.depth - 1
        width = self.scrollable_content_region.width - max(0, depth) * self.guide_depth
        words = row(entry, self._clock.monotonic())
        if node.children and not node.is_expanded:
            words = Row(words.glyph, f"▸ {words.name}", words.note, words.right)
        plain = node is self.cursor_node and self.has_focus
        return self._paint(words, entry, width, base_style, style, plain)

    def _paint(self, words: Row, entry: SpanNode, width: int, base: Style, style: Style, plain: bool) -> Text:
        def look(name: str) -> Style:
            if plain:
                return style
            if name not in self._looks:
                self._looks[name] = self.get_component_rich_style(name, partial=True)
            return style + self._looks[name]

        state = look("span-log--quiet" if entry.kind == "line" else _STATE_CLASS[entry.state])
        room = max(0, width - 2 - (cell_len(words.right) + 1 if words.right else 0))
        name = _cut(steady(words.name), room)
        room -= cell_len(name)
        note = _cut(steady(words.note), room - 2) if words.note and room > 6 else ""
        gap = room - (cell_len(note) + 2 if note else 0)
        name_style = look("span-log--name") if entry.kind in ("turn", "tool") else style
        note_style = state if entry.state == "failed" else look("span-log--quiet")
        right_style = state if entry.running else look("span-log--quiet")
        parts = (
            (f"{words.glyph} ", state),
            (name, name_style),
            (f"  {note}" if note else "", note_style),
            (" " * max(0, gap), style),
            (f" {words.right}" if words.right else "", right_style),
        )
        spans, end = [], 0
        for part, look_of_part in parts:
            start, end = end, end + len(part)
            spans.append(Span(start, end, look_of_part))
        # made in one go: a dozen rows are built at every update, and appending costs twice as much
        return Text("".join(part for part, _ in parts), no_wrap=True, end="", spans=spans)

    def on_tree_node_selected(self, event: Tree.NodeSelected[SpanNode]) -> None:
        event.stop()
        self._choose()

    def action_cursor_down(self) -> None:
        self._choose_by_key(super().action_cursor_down)
        if self.cursor_line == self.last_line:
            self.action_follow()

    def action_cursor_up(self) -> None:
        self._choose_by_key(super().action_cursor_up)

    def _choose_by_key(self, move: Callable[[], None]) -> None:
        if not self.root.children:
            return
        if self.cursor_line == -1:
            self.cursor_line = self.last_line
            self.scroll_to_line(self.cursor_line, animate=False)
        else:
            move()
        self._choose()

    def _choose(self) -> None:
        self._chosen = True
        self.release_anchor()

    def action_follow(self) -> None:
        self._chosen = False
        self.cursor_line = self.last_line if self.root.children else -1
        self.anchor()

    def action_fold(self) -> None:
        node = self.cursor_node
        if node is None:
            return
        if node.is_expanded and node.children:
            node.collapse()
        elif node.parent is not None and not node.parent.is_root:
            self.move_cursor(node.parent)

    def action_unfold(self) -> None:
        if (node := self.cursor_node) is not None and node.children and not node.is_expanded:
            node.expand()

    def action_to_running(self) -> None:
        """To the innermost running entry."""
        deepest = max(self._running_spans.values(), key=lambda node: (node.depth, node.began), default=None)
        self._jump(deepest)

    def action_to_failure(self) -> None:
        """To the nearest failure above the cursor, else to the last one."""
        failures = [node.data for node in self._visible() if node.data and node.data.state == "failed"]
        above = [n for n in failures if self._rows[n.id].line < self.cursor_line]
        self._jump(above[-1] if above else failures[-1] if failures else None)

    def _visible(self) -> list[TreeNode[SpanNode]]:
        nodes = (self.get_node_at_line(line) for line in range(self.last_line + 1))
        return [node for node in nodes if node is not None]

    def _jump(self, entry: SpanNode | None) -> None:
        if entry is None or (known := self._rows.get(entry.id)) is None:
            self.app.bell()
            return
        above = known.parent
        while above is not None and not above.is_root:
            above.expand()
            above = above.parent
        _ = self.last_line  # builds the lines, so that the row knows where it is
        self._choose()
        self.move_cursor(known)

    def action_open_details(self) -> None:
        if (node := self.subject) is not None:
            self.post_message(self.Chosen(node))

    def action_copy_json(self) -> None:
        if (node := self.subject) is not None:
            self.post_message(self.CopyAsked(node))


def _cut(text: str, width: int) -> str:
    """`text` in at most `width` cells, an ellipsis where it was cut; wide characters never split."""
    if cell_len(text) <= width:
        return text
    return f"{set_cell_size(text, width - 1).rstrip()}…" if width > 1 else ""
