"""V8 by mini-racer's own C interface: one isolate, strings in and out, nothing else.

The Python layer of `py_mini_racer` is left out: it brings an event loop, wraps every value and looks
into thrown objects, which a tool can make deadly. These are the functions of mini-racer 0.14.1
(`py_mini_racer/_dll.py`); a test compares the signatures.
"""

from __future__ import annotations

import ctypes
import os
import queue
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, NoReturn

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
    "mr_call_function": (
        [ctypes.c_uint64, HandlePointer, HandlePointer, HandlePointer, ctypes.c_uint64],
        ctypes.c_uint64,
    ),
    "mr_set_hard_memory_limit": ([ctypes.c_uint64, ctypes.c_size_t], None),
    "mr_hard_memory_limit_reached": ([ctypes.c_uint64], ctypes.c_bool),
}


class ScriptError(Exception):
    """V8 could not compile a script or finish a call. The text is V8's own."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def open_library(folder: Path) -> ctypes.CDLL:
    """Loads V8 and sets its flags. Starts no isolate and no thread, so the process can still fork."""
    library = ctypes.CDLL(str(folder / "libmini_racer.so"))
    for name, (arguments, result) in SIGNATURES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, result
    library.mr_init_v8(" ".join(FLAGS).encode(), str(folder / "icudtl.dat").encode())
    return library


Program = Generator[None, Any, None]
"""Work between V8's tasks: posts some, and yields once for each to be given its value's handle."""


class Isolate:
    """One V8 isolate whose script gives an object with functions `receive`, `define` and `take`.

    mini-racer lends the isolate a thread and tells on it when a task is done; each hop from that thread
    to another and back costs as much as all else that a call needs. So once `drive` is called, the
    guest's own work is done on that thread too, between tasks. Microtasks run after each task.
    """

    def __init__(self, library: ctypes.CDLL, script: str) -> None:
        self._library = library
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._on_done: Callable[[Any], object] = self._answers.put
        self._callback = Callback(self._done)
        self._context = library.mr_init_context(self._callback)
        library.mr_eval(self._context, self._text(script.encode()), 0)
        box = self._answers.get()
        self._receive, self._define, self._take, self._nothing = (
            library.mr_get_object_item(self._context, box, self._text(name))
            for name in (b"receive", b"define", b"take", b"nothing")
        )

    def limit_memory(self) -> None:
        self._library.mr_set_hard_memory_limit(self._context, HARD_LIMIT)

    @property
    def out_of_memory(self) -> bool:
        return bool(self._library.mr_hard_memory_limit_reached(self._context))

    def drive(self, program: Program) -> NoReturn:
        """Runs `program`, which waits for V8 where it yields, on the isolate's thread. Never returns."""

        def begin(handle: Any) -> None:
            # Python would make a state for this thread, and end it again, in every call of V8's.
            ctypes.pythonapi.PyGILState_Ensure()
            self._free(handle)
            self._on_done = program.send
            next(program)

        self._on_done = begin
        self._call(self._take, self._nothing)
        while True:
            self._answers.get()  # which nobody answers: the program ends the process

    def pump(self, text: bytes) -> Generator[None, Any, bytes]:
        """Hands ASCII text to `receive`, and gives what `take` says (UTF-8) once all microtasks have run.

        Raises ScriptError where it can say nothing, which only want of memory can bring about.
        """
        value = self._text(text)
        self._call(self._receive, value)
        self._free(value)
        return (yield from self._taken())

    def compile(self, source: bytes) -> Generator[None, Any, Any]:
        """The function that a script's one expression is, to be given to `run_module` or `drop`.

        Raises ScriptError where it does not compile, or is no function.
        """
        script = self._text(source)
        self._library.mr_eval(self._context, script, 0)
        self._free(script)
        function = yield
        kind = function.contents.type
        if kind == FUNCTION:
            return function
        text = _text_of(function).decode("utf-8", "replace") if kind >= FIRST_ERROR else ""
        self._free(function)
        raise ScriptError(text or "the module is not a function body")

    def run_module(self, function: Any) -> Generator[None, Any, bytes]:
        """Hands a compiled module to `define`, and gives what `take` says. Raises as `pump`."""
        self._call(self._define, function)
        self._free(function)
        return (yield from self._taken())

    def drop(self, function: Any) -> None:
        """Forgets a compiled module that is not to be run."""
        self._free(function)

    def _taken(self) -> Generator[None, Any, bytes]:
        self._call(self._take, self._nothing)
        self._free((yield))
        answer = yield
        try:
            if answer.contents.type != TEXT:
                raise ScriptError("the guest can say nothing")
            return _text_of(answer)
        finally:
            self._free(answer)

    def _done(self, _id: int, handle: Any) -> None:
        try:
            self._on_done(handle)
        except BaseException as failure:  # noqa: BLE001 - the thread's outermost border
            os.write(2, f"guest: {type(failure).__name__}: {failure}\n".encode(errors="replace"))
            os._exit(70)

    def _call(self, function: Any, this: Any) -> None:
        """Posts a call without arguments; it is told when it is done."""
        self._library.mr_call_function(self._context, function, this, self._nothing, 0)

    def _text(self, text: bytes) -> Any:
        return self._library.mr_alloc_string_val(self._context, text, len(text), TEXT)

    def _free(self, handle: Any) -> None:
        self._library.mr_free_value(self._context, handle)


def _text_of(handle: Any) -> bytes:
    held = handle.contents
    text: bytes = held.value.text[: held.length]
    return text
