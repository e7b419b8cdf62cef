# ruff: noqa: E501 - a row of code inside a table reads best on one line
"""What may stand in a tool's file, and where the errors point. Parsed and run in real guests."""

from __future__ import annotations

import pytest

from .conftest import HEAD, Bench, Resident

pytestmark = pytest.mark.asyncio(loop_scope="session")

EXECUTE = "export function execute() { return 1 }"

REFUSED: dict[str, tuple[str, str, int, int]] = {
    "import": ("\nimport a from 'a';", "`import` is not available", 2, 1),
    "import for effect": ("  import 'a';", "`import` is not available", 1, 3),
    "import()": ("const a = 1;\nconst b = import('x');", "`import()` is not available", 2, 11),
    "import() in a function": ("const f = () => {\n  return import('x') };", "`import()` is not available", 2, 10),
    "import.meta": ("const a = import.meta.url;", "`import.meta`", 1, 11),
    "require": ("\n\n  const fs = require('fs');", "`require` is not available", 3, 14),
    "export default": ("export default function () {}", "`export default`", 1, 1),
    "export default value": ("const a = 1; export default a;", "`export default`", 1, 14),
    "export list": ("const a = 1;\nexport { a };", "`export { … }`", 2, 1),
    "export list from": ("export { a } from 'b';", "`export { … }`", 1, 1),
    "export renamed": ("const a = 1;\nexport { a as b };", "`export { … }`", 2, 1),
    "export all": ("export * from 'b';", "`export * from`", 1, 1),
    "export all as": ("export * as b from 'b';", "`export * from`", 1, 1),
    "destructured object": ("export const { a } = {a: 1};", "cannot be taken apart", 1, 14),
    "destructured array": ("\n export const [a] = [1];", "cannot be taken apart", 2, 15),
    "export let": ("export let a = 1;", "`export let`", 1, 1),
    "export var": ("export var a = 1;", "`export var`", 1, 1),
    "export class": ("export class A {}", "`export class`", 1, 1),
    "export generator": ("export function* a() {}", "`export function*`", 1, 1),
    "top-level await": ("const a = 1;\nconst b = await a;", "`await` outside a function", 2, 11),
    "top-level for await": ("for await (const a of []) {}", "`await` outside a function", 1, 5),
    "await in a block": ("{ if (true) { await 1 } }", "`await` outside a function", 1, 15),
    "top-level return": ("const a = 1;\n  return { execute() {} };", "`return` outside a function", 2, 3),
    "return in a block": ("if (1) { return }", "`return` outside a function", 1, 10),
    "new.target": ("const a = new.target;", "`new.target`", 1, 11),
    "html comment": ("<!-- x\n", "not comments in a module", 1, 1),
    "export alone on its line": ("\nexport\nfunction execute() {}", "on the same line", 2, 1),
    "exported twice": (
        "export function a() {}\nexport function a() {}",
        "a is exported twice",
        2,
        17,
    ),
    "unclosed brace": ("export const a = {\n  b: 1,\n  c: [1, 2\n};", "Unexpected token '}'", 4, 1),
    "stray token": ("const a = ;", "Unexpected token ';'", 1, 11),
    "two names": ("const a = 1;\nlet foo bar;", "Unexpected identifier 'bar'", 2, 9),
    "unclosed string": ("\n  const a = 'abc\n", "Invalid or unexpected token", 2, 13),
    "declared twice": ("let a = 1;\nlet a = 2;", "already been declared", 2, 5),
    "with": ("const a = {};\n with (a) {}", "with statement", 2, 2),
    "octal": ("const a = 08;", "leading zeros", 1, 11),
    "bad pattern": ("const a = /(/;", "Invalid regular expression", 1, 11),
    "column after wide letters": ("const é = '日本', 😀 = 1;", "Invalid or unexpected token", 1, 17),
    "column after a byte-order mark": ("\ufeffconst a = ;", "Unexpected token ';'", 1, 11),
    "windows line ends": ("const a = 1;\r\nconst b = ;\r\n", "Unexpected token ';'", 2, 11),
    "after a hashbang": ("#!/usr/bin/env node\nconst b = ;", "Unexpected token ';'", 2, 11),
    "ends too early": ("const a = 1;\nconst f = (", "ends too early", 2, 12),
    "throws": ("const a = 1;\nconst b = a.b.c;", "Cannot read properties of undefined", 2, 15),
    "throws in a function": ("function f() {\n  throw new RangeError('no') }\nf();", "RangeError: no", 2, 9),
    "assigns a constant": ("const a = 1;\na = 2;", "Assignment to constant variable", 2, 3),
    "unknown name": ("\n  nothing();", "nothing is not defined", 2, 3),
}  # fmt: skip

BAD_EXPORTS: dict[str, tuple[str, str]] = {
    "function in metadata": ("export const metadata = {title() {}};", "metadata.title is a function"),
    "getter": ("export const metadata = {get title() { return 1 }};", "metadata.title is a getter"),
    "cycle": ("const a = {}; a.b = [a]; export const inputSchema = a;", "inputSchema.b[0] is a cycle"),
    "undefined": ("export const metadata = {title: undefined};", "metadata.title is undefined"),
    "NaN": ("export const timeoutMs = 0 / 0;", "timeoutMs is NaN"),
    "BigInt": ("export const timeoutMs = 10n;", "timeoutMs is a BigInt"),
    "symbol": ("export const schemaVersion = Symbol();", "schemaVersion is a symbol"),
    "date": ("export const metadata = {title: new Date()};", "metadata.title is not a plain object"),
    "map": ("export const capabilities = new Map();", "capabilities is not a plain object"),
    "class": ("export const metadata = new (class {})();", "metadata is not a plain object"),
    "odd key": ("export const metadata = {'a b': () => 1};", 'metadata["a b"] is a function'),
    "hole": ("export const inputSchema = {a: [1, , 2]};", "inputSchema.a[1] is missing"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_refused_at_its_place(resident: Resident, name: str) -> None:
    source, words, line, column = REFUSED[name]
    error = await resident.refusal(source)
    assert error.code == "INVALID_TOOL"
    assert words in error.message
    assert (error.line, error.column) == (line, column)


@pytest.mark.parametrize("name", BAD_EXPORTS)
async def test_exports_have_to_be_plain_json(resident: Resident, name: str) -> None:
    source, words = BAD_EXPORTS[name]
    error = await resident.refusal(source)
    assert error.code == "INVALID_TOOL"
    assert words in error.message


async def test_computed_exports(bench: Bench) -> None:
    exports = await bench.load(
        "const seconds = n => n * 1000;\n"
        "export const timeoutMs = seconds(10), schemaVersion = ['worldagents', 'tool', 'v1'].join('.');\n"
        "export const metadata = Object.freeze({title: `a${1 + 1}`, description: 'ü😀'});\n"
        "export const capabilities = {camera: true};\n"
        "export async function execute() {}\n"
    )
    assert exports == {
        "timeoutMs": 10000,
        "schemaVersion": "worldagents.tool.v1",
        "metadata": {"title": "a2", "description": "ü😀"},
        "capabilities": {"camera": True},
        "execute": True,
    }


@pytest.mark.parametrize(
    ("source", "execute"),
    [
        (EXECUTE, True),
        ("export const execute = async (ctx) => 1", True),
        ("export const execute = 5;", False),
        ("", False),
        ("function execute() {}", False),
        ("export const execute = class {};", True),
    ],
)
async def test_whether_there_is_an_execute(resident: Resident, source: str, execute: bool) -> None:
    assert (await resident.load(source))["execute"] is execute


@pytest.mark.parametrize(
    "source",
    [
        "#!/usr/bin/env node\n" + EXECUTE,
        "\ufeff" + EXECUTE,
        "export async\tfunction execute() { await 1 }",
        "'use strict';" + EXECUTE,
        EXECUTE + " // a comment at the end",
        EXECUTE + "\n//# sourceMappingURL=x.map",
        "const text = 'export default import.meta await require()';" + EXECUTE,
        "/* import x from 'y' */" + EXECUTE,
        "const o = {require() {}, import: 1, await: 2}; o.require('x');" + EXECUTE,
        "const f = async () => { for await (const a of []) await a; return 1 };" + EXECUTE,
        "class A { static #x = 1; static { this.y = 2 } m() { return new.target } }" + EXECUTE,
        "const a = 1\nexport const execute = () => a",
        "export const execute = () => (" + "1 + " * 500 + "1)",
        "const r = /[x\\]]export default/v;" + EXECUTE,
    ],
)
async def test_accepted(resident: Resident, source: str) -> None:
    assert (await resident.load(source))["execute"] is True


async def test_the_file_has_to_be_utf8(bench: Bench) -> None:
    error = await bench.refusal(b"const a = 1;\n  const b = '\xff';")
    assert (error.code, error.line, error.column) == ("INVALID_TOOL", 2, 14)


async def test_an_error_while_running_points_into_the_file(bench: Bench) -> None:
    source = f"{HEAD}\nexport function execute(ctx, input) {{\n  const a = null;\n  return a.b;\n}}\n"
    with pytest.raises(Exception, match="Cannot read properties of null") as caught:
        await bench.execute(source.encode())
    assert (caught.value.line, caught.value.column) == (4, 12)  # type: ignore[attr-defined]


async def test_a_broken_file_leaves_the_guest_usable_for_a_good_one(bench: Bench) -> None:
    guest = await bench.sandbox.guest()
    try:
        with pytest.raises(Exception, match="not available"):
            await guest.load(b"import a from 'b'", "a.tool.js", timeout_s=5)
        await guest.load(EXECUTE.encode(), "b.tool.js", timeout_s=5)
        assert await bench.run(guest) == 1
    finally:
        await guest.kill()
