"""Finding where an export is written, for errors about its value."""

from __future__ import annotations

import time

import pytest

from edge_agent.engine.source_places import path_in, place_of
from edge_agent.errors import SourcePosition

SOURCE = """\
// export const metadata = { title: "in a comment" };
const text = `
export const metadata = { title: "in a template" };`; /* export const timeoutMs = 1;
*/ export const metadata = {
  "title": "x", description: 'y: z',
};
export const capabilities = { databases: { title: { path: "p" } }, files: { b: { path: 5 } } };
export async function execute(ctx) { return { timeoutMs: 1 } }
\texport const timeoutMs = 1;
"""


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (["metadata"], (4, 17)),
        (["metadata", "title"], (5, 4)),
        (["metadata", "description"], (5, 17)),
        (["metadata", "none"], (4, 17)),
        (["capabilities", "files", "b", "path"], (7, 82)),
        (["capabilities", "files", "none", "path"], (7, 82)),
        (["execute"], (8, 23)),
        (["timeoutMs"], (9, 15)),
    ],
)
def test_the_innermost_key_that_is_found(path: list[str], place: tuple[int, int]) -> None:
    if path[-2:] == ["none", "path"]:  # stops where the path is lost
        place = (7, 68)
    assert place_of(path, SOURCE) == SourcePosition(*place)


@pytest.mark.parametrize("path", [[], ["schemaVersion"], ["meta"], ["metadata2"], ["a.*b("]])
def test_what_is_not_written_has_no_place(path: list[str]) -> None:
    assert place_of(path, SOURCE) is None


def test_a_byte_order_mark_takes_no_column() -> None:
    assert place_of(["a"], "\ufeffexport const a = 1;") == SourcePosition(1, 14)


@pytest.mark.parametrize(
    ("message", "path"),
    [
        ("`metadata.title` must be a non-blank string", ("metadata", "title")),
        ("`capabilities.llm.models[2]`: must be", ("capabilities", "llm", "models", "2")),
        ("The export metadata.title[0] is NaN; it has to be plain JSON.", ("metadata", "title", "0")),
        ("The export capabilities cannot be read: x", ("capabilities",)),
        ("something else", ()),
        ("`import` is not available", ("import",)),
    ],
)
def test_the_path_that_a_message_speaks_of(message: str, path: tuple[str, ...]) -> None:
    assert path_in(message) == path


@pytest.mark.parametrize(
    "piece", ["/*", "'\\", "`\\", '"', "export ", "a:", "'a':", "/*a*/", "`a", "\n", "//\\\n"]
)
def test_no_text_of_the_largest_size_takes_long(piece: str) -> None:
    text = (piece * 262_144)[:262_144]
    began = time.process_time()
    place_of(["metadata", "title"], text + "\nexport const metadata = {}" + text)
    assert time.process_time() - began < 5
