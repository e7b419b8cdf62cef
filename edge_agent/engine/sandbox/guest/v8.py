"""V8 by mini-racer's own C interface: one isolate, strings in and out, nothing else.

The Python layer of `py_mini_racer` is left out: it brings an event loop, wraps every value and looks
into thrown objects, which a tool can make deadly. These are the functions of mini-racer 0.14.1
(`py_mini_racer/_dll.py`); a test compares the signatures. Each call hops to the isolate's thread
and back (about 15 µs); microtasks have run when it returns.
"""

from __future__ import annotations

import ctypes
import queue
from pathlib import Path
from typing import Any

FLAGS = (
    "--single-threaded",
    "--max-heap-size=128",
    "--jitless",
    "--disallow-code-generation-from-strings",
)
HARD_LIMIT = 100 * 1024 * 1024
"""Bytes of live heap at which mini-racer ends the script, below V8's own fatal 128 MiB."""

TEXT = 5
FUNCTION = 100
FIRST_ERROR = 200
PARSE_ERROR = 201


class _Value(ctypes.Union):
    _fields_ = (
        ("pointer", ctypes.c_void_p),
        ("text", ctypes.POINTER(ctypes.c_char)),
        ("integer", ctypes.c_int64),
        ("double", ctypes.c_double),
    )


class _Handle(ctypes.Structure):
    _fields_ = (("value", _Value), ("length", ctypes.c_size_t), ("type", ctypes.c_uint8))
    _pack_ = 1


HandlePointer = ctypes.POINTER(_Handle)
Callback = ctypes.CFUNCTYPE(None, ctypes.c_uint64, HandlePointer)

SIGNATURES: dict[str, tuple[list[Any], Any]] = {
    "mr_init_v8": ([ctypes.c_char_p, ctypes.c_char_p], None),
    "mr_init_context": ([Callback], ctypes.c_uint64),
    "mr_eval": ([ctypes.c_uint64, HandlePointer, ctypes.c_uint64], ctypes.c_uint64),
    "mr_free_value": ([ctypes.c_uint64, HandlePointer], None),
    "mr_alloc_string_val": (
        [ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint8],
        HandlePointer,
    ),
    "mr_get_object_item": ([ctypes.c_uint64, HandlePointer, HandlePointer], HandlePointer),
    "mr_set_object_item": ([ctypes.c_uint64, HandlePointer, HandlePointer, HandlePointer], HandlePointer),
    "mr_set_hard_memory_limit": ([ctypes.c_uint64, ctypes.c_size_t], None),
    "mr_hard_memory_limit_reached": ([ctypes.c_uint64], ctypes.c_bool),
}


class ScriptError(Exception):
    """V8 could not compile or finish a script; `parsing` tells which. The text is V8's own."""

    def __init__(self, text: str, parsing: bool) -> None:
        super().__init__(text)
        self.text = text
        self.parsing = parsing


def open_library(folder: Path) -> ctypes.CDLL:
    """Loads V8 and sets its flags. Starts no isolate and no thread, so the process can still fork."""
    library = ctypes.CDLL(str(folder / "libmini_racer.so"))
    for name, (arguments, result) in SIGNATURES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, result
    library.mr_init_v8(" ".join(FLAGS).encode(), str(folder / "icudtl.dat").encode())
    return library


class Isolate:
    """One V8 isolate whose script gives an object with properties `in` (set) and `out` (get)."""

    def __init__(self, library: ctypes.CDLL, script: str) -> None:
        self._library = library
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._callback = Callback(lambda _id, handle: self._answers.put(handle))
        self._context = library.mr_init_context(self._callback)
        self._in = self._text(b"in")
        self._out = self._text(b"out")
        self._module = self._text(b"module")
        self._box = self._evaluate(script.encode())

    def limit_memory(self) -> None:
        self._library.mr_set_hard_memory_limit(self._context, HARD_LIMIT)

    @property
    def out_of_memory(self) -> bool:
        return bool(self._library.mr_hard_memory_limit_reached(self._context))

    def pump(self, text: bytes) -> bytes:
        """Sets `in` to ASCII text and reads `out` (UTF-8) when all microtasks have run."""
        self._set(self._in, text)
        return self._read_out()

    def define_module(self, source: bytes, *, run: bool) -> bytes:
        """Compiles an expression that is a function and, with `run`, sets `module` to it and reads `out`.

        Raises ScriptError where it does not compile, or is no function.
        """
        function = self._evaluate(source)
        if function.contents.type != FUNCTION:
            self._free(function)
            raise ScriptError("the module is not a function body", parsing=True)
        if not run:
            self._free(function)
            return b""
        answer = self._library.mr_set_object_item(self._context, self._box, self._module, function)
        self._free(answer)
        self._free(function)
        return self._read_out()

    def _set(self, key: Any, text: bytes) -> None:
        value = self._text(text)
        self._free(self._library.mr_set_object_item(self._context, self._box, key, value))
        self._free(value)

    def _read_out(self) -> bytes:
        answer = self._library.mr_get_object_item(self._context, self._box, self._out)
        try:
            held = answer.contents
            return held.value.text[: held.length] if held.type == TEXT else b""
        finally:
            self._free(answer)

    def _evaluate(self, code: bytes) -> Any:
        script = self._text(code)
        self._library.mr_eval(self._context, script, 0)
        answer = self._answers.get()
        self._free(script)
        held = answer.contents
        if held.type >= FIRST_ERROR:
            text = held.value.text[: held.length].decode("utf-8", "replace")
            parsing = held.type == PARSE_ERROR
            self._free(answer)
            raise ScriptError(text, parsing)
        return answer

    def _text(self, text: bytes) -> Any:
        return self._library.mr_alloc_string_val(self._context, text, len(text), TEXT)

    def _free(self, handle: Any) -> None:
        if handle:
            self._library.mr_free_value(self._context, handle)
