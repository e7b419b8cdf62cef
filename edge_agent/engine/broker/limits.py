"""Every limit of the tool contract that the host enforces, in one place (contract, section 5).

Sizes are bytes of UTF-8, times seconds, unless a name says otherwise. The sandbox keeps its own copy
of what it counts (calls, concurrency, heap), because a guest may import nothing of the broker.
"""

from __future__ import annotations

DEFAULT_TIMEOUT_MS = 30_000
MAX_TIMEOUT_MS = 120_000

MAX_JSON_BYTES = 262_144
"""A tool's input, its result, and one database answer, as JSON."""
MAX_TEXT_BYTES = 262_144
"""One text file of `ctx.files`."""
MAX_ARGUMENT_BYTES = 2 * 1024 * 1024
"""One capability call's arguments: a text file whose every byte is escaped in JSON, and its frame."""
MAX_ARGUMENT_DEPTH = 200

MAX_CALLS = 32
MAX_CALLS_AT_ONCE = 8
MAX_HEAP_BYTES = 128 * 1024 * 1024
MAX_LOG_LINES = 100
MAX_LOG_BYTES = 16_384
MAX_RECENT_TURNS = 12

MAX_OUTPUT_TOKENS = 2048
MAX_PROMPT_BYTES = 262_144
"""Prompt and system instruction of one model call, each."""
MAX_MODEL_IMAGES = 32
"""Images of one model call: as many as a run's other calls can open, and the camera's frame."""
MAX_SCHEMA_BYTES = 65_536

MAX_IMAGE_FILE_BYTES = 16 * 1024 * 1024
MAX_IMAGE_PIXELS = 40_000_000
"""Enough for a 40-megapixel photo; a decoded one of these takes 120 MB for a moment."""
MAX_RUN_IMAGE_BYTES = 64 * 1024 * 1024
"""All encoded images that one run may hold open."""

MAX_LIST_ENTRIES = 1000
MAX_LIST_DEPTH = 8
MAX_NAME_BYTES = 1024

MAX_ALIASES = 16
"""Aliases of one kind that a tool may declare."""

FRESH_SECONDS = 15.0
"""A camera frame received longer ago does not exist."""
