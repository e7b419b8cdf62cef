"""Where in a tool's source an export, or a key inside it, is written: for errors about its value.

What an export is worth is known only once the module has run, which leaves no position. So the place is
looked for in the text: good enough to point a person at, never used to decide anything. Only Python's own
regular expressions see the untrusted text here, in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from edge_agent.errors import SourcePosition

# Comments and texts. What is not closed matches to its end all the same: a search that failed there
# would begin anew at every quote, and the time would grow with the square of the size.
_INERT = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)"
    r'|"(?:[^"\\\n]|\\.)*"?|\'(?:[^\'\\\n]|\\.)*\'?|`(?:[^`\\]|\\.)*`?',
    re.DOTALL,
)
_PATH = re.compile(r"`(?P<ticked>[A-Za-z_$][^`\s]{0,400})`|^The export (?P<plain>[A-Za-z_$][^\s;]{0,400})")
_NOT_LINE_END = re.compile(r"[^\n]")
_KEYS = re.compile(r"[^.\[\]]+")


def path_in(message: str) -> tuple[str, ...]:
    """The path that a message speaks of: `` `metadata.title` must … `` → ("metadata", "title")."""
    found = _PATH.search(message)
    if found is None:
        return ()
    return tuple(_KEYS.findall(found["ticked"] or found["plain"]))


def place_of(path: Sequence[str], source: str) -> SourcePosition | None:
    """The place of the export `path[0]`, or of the innermost of the following keys that is found in it.

    Columns count characters, as the sandbox's own positions do. None where there is no such export.
    """
    if not path:
        return None
    names = source.removeprefix("\ufeff")
    # Blanked of comments and texts, except keys written as texts: {"title": …}.
    code = _INERT.sub(_blank, names)
    form = r"\bexport[ \t]+(?:const|(?:async[ \t]+)?function)[ \t]+"
    export = re.search(rf"{form}(?P<name>{re.escape(path[0])})(?![\w$])", code)
    if export is None:
        return None
    at = export.start("name")
    end = code.find("\nexport ", at)
    end = len(code) if end < 0 else end
    for key in path[1:]:
        inner = re.compile(rf"(?<![\w$.])[\"']?(?P<key>{re.escape(key)})[\"']?\s*:").search(code, at, end)
        if inner is None:
            break
        at = inner.start("key")
    line_start = code.rfind("\n", 0, at) + 1
    return SourcePosition(code.count("\n", 0, at) + 1, at - line_start + 1)


def _blank(match: re.Match[str]) -> str:
    text = match.group()
    if text[0] in "\"'" and match.string[match.end() : match.end() + 32].lstrip().startswith(":"):
        return text
    return " " * len(text) if "\n" not in text else _NOT_LINE_END.sub(" ", text)
