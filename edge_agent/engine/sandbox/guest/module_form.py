"""The module form of a tool: what may stand in its file, and the script that V8 is given.

V8 by mini-racer has no modules, so the six letters of each `export` are blanked in place (columns
stay true) and the file becomes the body of a strict function that returns its named exports. What
the contract refuses is refused here by the kind of syntax node, not by text. Parsing is C on
untrusted text: it runs only inside the guest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import tree_sitter_javascript
from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree

from edge_agent.engine.sandbox.guest import framing

_LANGUAGE = Language(tree_sitter_javascript.language())
_SUSPECTS = Query(
    _LANGUAGE,
    """
    (import_statement) @import
    (call_expression function: (import)) @dynamic
    (call_expression function: (identifier) @require (#eq? @require "require"))
    (meta_property) @meta
    (await_expression) @await
    (for_in_statement "await" @await)
    (using_declaration "await" @await)
    (return_statement) @return
    (html_comment) @html
    (program (expression_statement . (identifier) @lonely . (#eq? @lonely "export")))
    """,
)
_FUNCTIONS = frozenset(
    {
        *("function_declaration", "function_expression", "arrow_function", "method_definition"),
        *("generator_function", "generator_function_declaration"),
    }
)
_ONE_BY_ONE = "Export each name where it is made: export const NAME = …, or export [async] function NAME."
_CARET = re.compile(
    r"<anonymous>:(?P<line>\d+): (?:Uncaught )?(?P<message>[^\n]*)(?:\n[^\n]*\n(?P<caret> *)\^+)?"
)


class RefusedError(Exception):
    """The file is no tool module. `line` and `column` count from 1, in the author's file."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class Module:
    """The script (an expression that is a function), and where the parser stumbled, if it did."""

    code: bytes
    doubt: RefusedError | None


def rewrite(source: str, filename: str) -> Module:
    """Raises RefusedError for what the contract forbids.

    Where the grammar finds an error, `doubt` says so: the module must not run, but V8's own words
    about it are better and are to be asked for first.
    """
    text = source.removeprefix("\ufeff").encode("utf-8", "surrogatepass")
    tree = Parser(_LANGUAGE).parse(text)
    script = bytearray(text)
    if text.startswith(b"#!"):
        script[:2] = b"//"
    names = []
    for node in tree.root_node.children:
        if node.type == "export_statement":
            names += _exported(node, text)
            script[node.start_byte : node.start_byte + len("export")] = b" " * len("export")
    _refuse_suspects(tree, text)
    seen: set[bytes] = set()
    for name, node in names:
        if name in seen:
            raise _refusal(f"{name.decode()} is exported twice.", node, text)
        seen.add(name)
    exports = b",".join(name for name, _node in names)
    end = (
        b"\n;return{__proto__:null," + exports + b"};})\n//# sourceURL=" + filename.encode("ascii", "replace")
    )
    return Module(b'(function(){"use strict";\n' + bytes(script) + end, _grammar_error(tree, text))


def explain_v8(report: str, doubt: RefusedError | None, source: str) -> RefusedError:
    """V8's complaint about a script, at its place in the author's file."""
    match = _CARET.match(report)
    if match is None:
        return doubt or RefusedError(report.partition("\n")[0] or "The file cannot be read.", 1, 1)
    line = int(match["line"]) - framing.WRAPPER_LINES
    lines = source.split("\n")
    if line > len(lines):
        return RefusedError("SyntaxError: The file ends too early.", len(lines), len(lines[-1]) + 1)
    return RefusedError(match["message"], max(1, line), len(match["caret"] or "") + 1)


def _exported(node: Node, text: bytes) -> list[tuple[bytes, Node]]:
    """The names that one export statement makes; RefusedError unless it is one of the three forms."""
    declaration = node.child_by_field_name("declaration")
    kinds = {child.type for child in node.children}
    if "default" in kinds:
        raise _refusal(f"`export default` is not available in tools. {_ONE_BY_ONE}", node, text)
    if declaration is None:
        form = "`export * from`" if kinds & {"*", "namespace_export"} else "`export { … }`"
        raise _refusal(f"{form} is not available in tools. {_ONE_BY_ONE}", node, text)
    if declaration.type == "function_declaration":
        return [_name(declaration, text)]
    if declaration.type == "lexical_declaration" and declaration.children[0].type == "const":
        return [
            _name(child, text) for child in declaration.named_children if child.type == "variable_declarator"
        ]
    first = declaration.text.split(None, 1)[0].decode("utf-8", "replace") if declaration.text else "this"
    shown = "function*" if declaration.type == "generator_function_declaration" else first
    raise _refusal(f"`export {shown}` is not available in tools. {_ONE_BY_ONE}", node, text)


def _name(node: Node, text: bytes) -> tuple[bytes, Node]:
    name = node.child_by_field_name("name")
    if name is None or name.type != "identifier" or name.text is None:
        raise _refusal(
            "An export cannot be taken apart: write export const NAME = … for each name.", node, text
        )
    return name.text, name


def _refuse_suspects(tree: Tree, text: bytes) -> None:
    """Refuses the first forbidden form in the order of the file."""
    found: list[tuple[int, Node, str]] = []
    for kind, nodes in QueryCursor(_SUSPECTS).captures(tree.root_node).items():
        for node in nodes:
            words = _objection(kind, node)
            if words is not None:
                found.append((node.start_byte, node, words))
    if found:
        _start, node, words = min(found, key=lambda entry: entry[0])
        raise _refusal(words, node, text)


def _objection(kind: str, node: Node) -> str | None:
    match kind:
        case "import":
            return "`import` is not available: a tool is one file without dependencies."
        case "dynamic":
            return "`import()` is not available: a tool is one file without dependencies."
        case "require":
            return "`require` is not available: a tool is one file without dependencies."
        case "lonely":
            # The grammar takes `export` and a line break for a statement of its own.
            return "Write `export` and what it exports on the same line."
        case "html":
            return "`<!--` and `-->` are not comments in a module."
        case "meta":
            if node.text is not None and node.text.startswith(b"import"):
                return "`import.meta` is not available in tools."
            return None if _in_function(node) else "`new.target` outside a function."
        case "await":
            return (
                None if _in_function(node) else "`await` outside a function: a tool's top level runs at once."
            )
        case _:
            return None if _in_function(node) else "`return` outside a function."


def _in_function(node: Node) -> bool:
    above = node.parent
    while above is not None:
        if above.type in _FUNCTIONS:
            return True
        above = above.parent
    return False


def _grammar_error(tree: Tree, text: bytes) -> RefusedError | None:
    node = tree.root_node
    if not node.has_error:
        return None
    while True:
        if node.is_missing:
            return _refusal(f"SyntaxError: `{node.type}` is missing.", node, text)
        inner = next((child for child in node.children if child.has_error or child.is_missing), None)
        if inner is None:
            near = text[node.start_byte : node.end_byte].decode("utf-8", "replace").split("\n")[0][:40]
            return _refusal(f"SyntaxError: This cannot be read: `{near.strip()}`.", node, text)
        node = inner


def _refusal(message: str, node: Node, text: bytes) -> RefusedError:
    start = text.rfind(b"\n", 0, node.start_byte) + 1
    column = len(text[start : node.start_byte].decode("utf-8", "replace"))
    return RefusedError(message, node.start_point.row + 1, column + 1)
