# ruff: noqa: E501 - a row of code inside a table reads best on one line
"""The globals that a tool may count on, and those that must not be there."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from typing import Any

import pytest

from .conftest import Bench, Resident

pytestmark = pytest.mark.asyncio(loop_scope="session")

VALUES: dict[str, tuple[str, Any]] = {
    "encode": ("[...new TextEncoder().encode('aé日😀\\ud800')]",
               [97, 195, 169, 230, 151, 165, 240, 159, 152, 128, 239, 191, 189]),
    "encodeInto": ("(() => { const b = new Uint8Array(4); return [new TextEncoder().encodeInto('é日x', b), [...b]] })()",
                   [{"read": 1, "written": 2}, [195, 169, 0, 0]]),
    "decode": ("new TextDecoder().decode(new Uint8Array([0xef,0xbb,0xbf,97,195,169,240,159,152,128]))", "aé😀"),
    "decode bad": ("new TextDecoder().decode(new Uint8Array([0xff,97,0xe6,0x97,98,0xed,0xa0,0x80,0xc0,0x80]))",
                   "\ufffda\ufffdb\ufffd\ufffd\ufffd\ufffd\ufffd"),
    "decode fatal": ("(() => { try { new TextDecoder('utf8', {fatal: true}).decode(new Uint8Array([255])) } catch (e) { return e.name } })()", "TypeError"),
    "decode stream": ("(() => { const d = new TextDecoder(); return d.decode(new Uint8Array([0xe6, 0x97]), {stream: true}) + d.decode(new Uint8Array([0xa5])) })()", "日"),
    "decode utf-16": ("new TextDecoder('utf-16le').decode(new Uint8Array([97,0,0x3d,0xd8,0,0xde]))", "a😀"),
    "decode latin1": ("new TextDecoder('latin1').decode(new Uint8Array([0xe9, 0x80]))", "é€"),
    "decode unknown": ("(() => { try { new TextDecoder('ebcdic') } catch (e) { return e.name } })()", "RangeError"),
    "decode a view": ("new TextDecoder().decode(new DataView(new Uint8Array([97,98,99]).buffer, 1, 1))", "b"),
    "btoa": ("['', 'a', 'ab', 'abc', '\\u00ff'].map(btoa)", ["", "YQ==", "YWI=", "YWJj", "/w=="]),
    "atob": ("['', 'YQ==', 'YWI', ' YW Jj ', '/w=='].map(atob)", ["", "a", "ab", "abc", "\xff"]),
    "btoa wide": ("(() => { try { btoa('日') } catch (e) { return [e.name, e instanceof Error] } })()", ["InvalidCharacterError", True]),
    "atob bad": ("['a', '*', 'YQ=', 'YQ==='].map(t => { try { return atob(t) } catch (e) { return e.name } })", ["InvalidCharacterError"] * 4),
    "clone": ("(() => { const a = {m: new Map([[1, new Set([2])]]), d: new Date(5), r: /x/g, b: new Uint8Array([1, 2]), n: null, u: undefined};"
              "a.self = a; const c = structuredClone(a);"
              "return [c !== a, c.self === c, [...c.m.get(1)], c.d.getTime(), String(c.r), [...c.b], c.b.buffer !== a.b.buffer, 'u' in c] })()",
              [True, True, [2], 5, "/x/g", [1, 2], True, True]),
    "clone an error": ("(() => { const c = structuredClone(new RangeError('x')); return [c instanceof RangeError, c.message] })()", [True, "x"]),
    "clone a function": ("(() => { try { structuredClone({a() {}}) } catch (e) { return e.name } })()", "DataCloneError"),
    "randomUUID": ("new Set(Array.from({length: 50}, () => crypto.randomUUID())).size", 50),
    "queueMicrotask": ("new Promise(r => queueMicrotask(() => r(7)))", 7),
    "setTimeout order": ("new Promise(r => { const o = []; setTimeout(() => o.push(2), 12); setTimeout(() => o.push(1), 2); setTimeout((x) => { o.push(x); r(o) }, 24, 3) })", [1, 2, 3]),
    "setTimeout late": ("new Promise(r => { const o = [], t = Date.now(); setTimeout(() => o.push(2), 3); setTimeout(() => o.push(1), 1); setTimeout(() => r(o), 9); while (Date.now() - t < 20); })", [1, 2]),
    "setTimeout cleared by another": ("new Promise(r => { const o = [], t = Date.now(); setTimeout(() => clearTimeout(b), 1); const b = setTimeout(() => o.push('no'), 2); setTimeout(() => r(o), 9); while (Date.now() - t < 20); })", []),
    "setTimeout same time": ("new Promise(r => { const o = []; for (const n of [1,2,3]) setTimeout(() => o.push(n), 1); setTimeout(() => r(o), 8) })", [1, 2, 3]),
    "clearTimeout": ("new Promise(r => { const t = setTimeout(() => r('no'), 1); clearTimeout(t); clearTimeout(999); clearTimeout('x'); setTimeout(() => r('yes'), 8) })", "yes"),
    "a throwing timer": ("new Promise(r => { setTimeout(() => { throw new Error('x') }, 0); setTimeout(() => r(1), 5) })", 1),
    "wait": ("(async () => { const t = Date.now(); await ctx.wait(20); return Date.now() - t >= 19 })()", True),
    "wait of nonsense": ("Promise.all([ctx.wait(), ctx.wait(-1), ctx.wait(NaN), ctx.wait('1')]).then(a => a.length)", 4),
    "search params": ("(() => { const p = new URLSearchParams('?a=1&b=%20x+y&a=2&c'); p.append('é', '&='); p.delete('c'); return [p.get('a'), p.getAll('a'), p.get('b'), p.has('c'), p.get('zz'), p.size, p.toString()] })()",
                      ["1", ["1", "2"], " x y", False, None, 4, "a=1&b=+x+y&a=2&%C3%A9=%26%3D"]),
    "search params made": ("[new URLSearchParams({a: 1, b: 'x'}).toString(), new URLSearchParams([['a', 'b']]).toString(), [...new URLSearchParams('b=1&a=2').keys()]]",
                           ["a=1&b=x", "a=b", ["b", "a"]]),
    "url and its params": ("(() => { const u = new URL('https://example.org/a?x=1'); u.searchParams.set('x', 'é&'); u.searchParams.append('y', '2'); u.hash = 'h h'; u.pathname = '/b c'; u.port = '8080'; return u.href })()",
                           "https://example.org:8080/b%20c?x=%C3%A9%26&y=2#h%20h"),
    "url parts": ("(() => { const u = new URL('HTTPS://me:pw@Example.ORG:443/a/../b/./c?q=1#f'); return [u.href, u.origin, u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash, JSON.stringify(u)] })()",
                  ["https://me:pw@example.org/b/c?q=1#f", "https://example.org", "https:", "me", "pw", "example.org", "example.org", "", "/b/c", "?q=1", "#f", '"https://me:pw@example.org/b/c?q=1#f"']),
    "canParse": ("[URL.canParse('https://a'), URL.canParse('nope'), URL.canParse('nope', 'https://a'), URL.parse('nope')]", [True, False, True, None]),
}  # fmt: skip

URLS = [
    *("http://a/b/c?d#e", "http://a", "http://a:80/", "http://a:8080/", "http:a", "http:/a", "http:\\\\a\\b", "https://a/%7Efoo/é"),
    *("http://1.2.3.4", "http://0x7f.1", "http://256.1", "http://1.2.3.4.5", "http://[::1]/", "http://[1:0:0:2:0:0:0:3]"),
    *("http://[::ffff:1.2.3.4]/", "http://[1::2::3]", "http://a b", "http://a%41", "http://", "http:///a", "mailto:x@y.z"),
    *("data:text/plain,hi there", "file:///a/b", "file://localhost/x", "file:a", "ftp://a:21/x", "foo://Bar/baz", "foo:/a/../b"),
    *("javascript:alert(1)", "http://user@/x", "http://u:p:q@h/", "http://h:99999", "http://h:x", "  http://a/ \n", "ht\ttp://a"),
    *("http://a/?q='<>\"", "http://a/#<>`", "http://a/<>{}|^`", "http://a//b//../c", "http://a/%2e%2E/b", "http://a/b/..", "http://a/b/."),
    *("foo://a?x y", "about:blank", "blob:https://a/b", "ws://a:80", "wss://a:443/x", "http://a.b./", "http://A_B/", "//a", "a"),
]  # fmt: skip
RELATIVE = ["", "x", "/x", "//h/x", "?q", "#f", "../x", "./", "../../../x", "x?y#z", "http:x", "https:x", "mailto:a", "..", ".", "\\x", "a:b"]  # fmt: skip
BASES = ["http://h/a/b/c?q#f", "http://h", "file:///a/b", "foo://h/a/b", "mailto:x@y"]

NODE_IS_WRONG = ["x?y#z", "mailto:x@y"]
"""Node 20 resolves this; the standard says that an opaque path is no base for a relative one."""

ABSENT = [
    *("fetch", "XMLHttpRequest", "WebSocket", "process", "require", "module", "exports", "global", "Buffer"),
    *("WebAssembly", "SharedArrayBuffer", "Atomics", "importScripts", "setInterval", "setImmediate", "Deno"),
]  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
async def test_globals(resident: Resident, name: str) -> None:
    expression, expected = VALUES[name]
    assert await resident.call(f"return await ({expression})") == expected


async def test_a_uuid_has_the_form_of_version_4(bench: Bench) -> None:
    got = await bench.call("return crypto.randomUUID()")
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", got)


async def test_two_guests_draw_different_numbers(bench: Bench) -> None:
    assert await bench.call("return Math.random()") != await bench.call("return Math.random()")


@pytest.mark.parametrize("name", ABSENT)
async def test_absent(resident: Resident, name: str) -> None:
    assert await resident.call(f"return [typeof {name}, '{name}' in globalThis]") == ["undefined", False]


async def test_urls_are_read_as_node_reads_them(bench: Bench) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    cases = [[url] for url in URLS] + [
        [url, base] for base in BASES for url in RELATIVE if [url, base] != NODE_IS_WRONG
    ]
    script = (
        "const show = (c) => { try { const u = new URL(...c); return [u.href, u.origin, u.host, u.port, u.pathname,"
        " u.search, u.hash, u.username, u.password] } catch { return null } };"
    )
    done = await asyncio.to_thread(
        subprocess.run,
        [node, "-e", f"{script} console.log(JSON.stringify({json.dumps(cases)}.map(show)))"],
        capture_output=True,
        check=True,
        timeout=30,
    )
    expected = json.loads(done.stdout)
    got = await bench.call(f"{script} return input.map(show)", argument=cases)
    differing = [
        (case, ours, theirs)
        for case, ours, theirs in zip(cases, got, expected, strict=True)
        if ours != theirs
    ]
    assert differing == [], json.dumps(differing)
