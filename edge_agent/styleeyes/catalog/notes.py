"""Product notes: `data/products/<styleId>.md`, YAML front matter and a description below it.

Front matter: `style_id`, `name` (both needed), `brand`, `category`, `colors`, `materials`, `gender`,
`price`, `currency`, `url`, `snapshot_date`, `photos: [{file, view, color, url}]`, and further
`patterns`, `sizes`, `gtins`, `variants: [{id, color, sizes, price, gtin}]`, `imported_from`,
`imported_sha256`. Other keys are kept as text in `ProductNote.more`.

Every scalar is read as it was written: YAML's guesses (`no` a boolean, `012` an octal number,
`2026-09-14` a date) are what breaks colour lists, style ids and dates, so none is made.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path
from urllib.parse import quote, unquote

import yaml

from edge_agent.errors import SourcePosition, UsageError
from edge_agent.text import sanitise

MAX_NOTE_BYTES = 262_144
"""As large as a text file of the tool contract."""
_FENCE = "---"
_CURRENCY = re.compile(r"[A-Z]{3}")
_MISSING = frozenset({"", "~", "null", "none", "unknown", "n/a"})


@dataclass(frozen=True, slots=True)
class PhotoReference:
    """A photo as a note names it; `file` is relative to `data/photos`."""

    file: str
    view: str | None = None
    color: str | None = None
    url: str | None = None
    """Where a retailer's feed said it was; kept so that it can be fetched later."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One orderable version of a style."""

    id: str
    color: str | None = None
    sizes: tuple[str, ...] = ()
    price: Decimal | None = None
    gtin: str | None = None


@dataclass(frozen=True, slots=True)
class ProductNote:
    """One style. `price` is in units of `currency` (ISO 4217); `snapshot_date` is ISO 8601 or unknown."""

    style_id: str
    name: str
    brand: str | None = None
    category: str | None = None
    colors: tuple[str, ...] = ()
    materials: tuple[str, ...] = ()
    gender: str | None = None
    price: Decimal | None = None
    currency: str | None = None
    url: str | None = None
    snapshot_date: str | None = None
    photos: tuple[PhotoReference, ...] = ()
    patterns: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    gtins: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    imported_from: str | None = None
    """The feed this note was made from; a note without it is hand-made and never rewritten."""
    imported_sha256: str | None = None
    """Of the note as imported: where it no longer fits, a person has edited the note since."""
    description: str = ""
    more: Mapping[str, str] = field(default_factory=dict)


class NoteError(UsageError):
    """A note that cannot be read; names the file and, where known, the line."""

    def __init__(self, file: str, line: int | None, problem: str, hint: str | None = None) -> None:
        where = f"{file}:{line}" if line else file
        at = SourcePosition(line, 1) if line else None
        super().__init__("INVALID_NOTE", f"{where}: {problem}", hint, at)


def note_file_name(style_id: str) -> str:
    """The file that holds a style: its id, percent-encoded where a file name could not hold it."""
    stem = quote(style_id, safe=" ()+,=@~!'&#")
    return f"%2E{stem[1:]}.md" if stem.startswith(".") else f"{stem}.md"


def style_id_of_file(name: str) -> str:
    """The inverse of `note_file_name`."""
    return unquote(name.removesuffix(".md"))


def read_note(path: Path) -> ProductNote:
    """Reads one note. Raises NoteError for anything that is not a usable note, OSError as it comes."""
    with path.open("rb") as source:
        data = source.read(MAX_NOTE_BYTES + 1)
    if len(data) > MAX_NOTE_BYTES:
        raise NoteError(path.name, None, f"is larger than {MAX_NOTE_BYTES // 1024} KiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        line = data[: wrong.start].count(b"\n") + 1
        raise NoteError(path.name, line, "is not UTF-8 text", "Save the note as UTF-8.") from None
    note = parse_note(text, path.name)
    expected = style_id_of_file(path.name)
    if note.style_id.casefold() != expected.casefold():
        raise NoteError(
            path.name,
            None,
            f"style_id is {note.style_id!r}, but the file is named for {expected!r}",
            f"Name the file {note_file_name(note.style_id)} or mend style_id.",
        )
    return note


def parse_note(text: str, file: str) -> ProductNote:
    """Parses the text of a note; `file` is only for messages. Raises NoteError."""
    front, body = _split(text, file)
    values = _Front(file, _compose(front, file))
    price_text, price_line = values.text("price")
    price = None
    if price_text is not None:
        price, written_currency = _price(price_text, file, price_line)
    else:
        written_currency = None
    currency = values.text("currency")[0] or written_currency
    if currency is not None and not _CURRENCY.fullmatch(currency.upper()):
        raise NoteError(file, values.line("currency"), f"currency {currency!r} is not a three-letter code")
    return ProductNote(
        style_id=values.needed("style_id"),
        name=values.needed("name"),
        brand=values.text("brand")[0],
        category=values.text("category")[0],
        colors=values.words("colors"),
        materials=values.words("materials"),
        gender=values.text("gender")[0],
        price=price,
        currency=currency.upper() if currency else None,
        url=values.text("url")[0],
        snapshot_date=_date(*values.text("snapshot_date"), file),
        photos=tuple(values.photos()),
        patterns=values.words("patterns"),
        sizes=values.words("sizes"),
        gtins=values.words("gtins"),
        variants=tuple(values.variants()),
        imported_from=values.text("imported_from")[0],
        imported_sha256=values.text("imported_sha256")[0],
        description=sanitise(body).strip(),
        more=values.more(),
    )


def render_note(note: ProductNote) -> str:
    """The text of a note; `parse_note` of it gives `note` again. Values are JSON, which YAML includes."""
    lines = [_FENCE]

    def put(key: str, value: object) -> None:
        if value:
            lines.append(f"{key}: {json.dumps(value, ensure_ascii=False)}")

    for key in ("style_id", "name", "brand", "category"):
        put(key, getattr(note, key))
    put("colors", note.colors)
    put("materials", note.materials)
    put("gender", note.gender)
    put("price", None if note.price is None else str(note.price))
    for key in ("currency", "url", "snapshot_date", "patterns", "sizes", "gtins"):
        put(key, getattr(note, key))
    if note.photos:
        lines.append("photos:")
        lines += [f"  - {_flow(_photo_fields(photo))}" for photo in note.photos]
    if note.variants:
        lines.append("variants:")
        lines += [f"  - {_flow(_variant_fields(variant))}" for variant in note.variants]
    for key, value in note.more.items():
        put(key, value)
    put("imported_from", note.imported_from)
    put("imported_sha256", note.imported_sha256)
    return "\n".join([*lines, _FENCE, "", note.description, ""])


def seal(note: ProductNote) -> ProductNote:
    """`note` with the digest by which a later edit by hand is noticed."""
    return replace(note, imported_sha256=_digest(note))


def is_untouched_import(note: ProductNote) -> bool:
    """Whether a note came from a feed and nobody has edited it since."""
    return note.imported_from is not None and note.imported_sha256 == _digest(note)


def _digest(note: ProductNote) -> str:
    return hashlib.sha256(render_note(replace(note, imported_sha256=None)).encode()).hexdigest()


def _flow(fields: Mapping[str, object]) -> str:
    return json.dumps({k: v for k, v in fields.items() if v}, ensure_ascii=False)


def _photo_fields(photo: PhotoReference) -> dict[str, object]:
    return {"file": photo.file, "view": photo.view, "color": photo.color, "url": photo.url}


def _variant_fields(variant: Variant) -> dict[str, object]:
    price = None if variant.price is None else str(variant.price)
    return {
        "id": variant.id,
        "color": variant.color,
        "sizes": list(variant.sizes),
        "price": price,
        "gtin": variant.gtin,
    }


def _split(text: str, file: str) -> tuple[str, str]:
    """The front matter, one blank line in place of its fence so that lines stay true, and the body."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[0].rstrip() != _FENCE:
        raise NoteError(file, 1, "does not begin with front matter", "Start the note with a line of ---.")
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() in (_FENCE, "..."):
            return "\n" + "\n".join(lines[1:number]), "\n".join(lines[number + 1 :])
    raise NoteError(file, 1, "has front matter that never ends", "Close it with a line of ---.")


def _compose(front: str, file: str) -> yaml.Node | None:
    loader = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader
    try:
        # Composed only, by the loader that resolves no types and builds no objects.
        return yaml.compose(front, Loader=loader)
    except yaml.MarkedYAMLError as wrong:
        mark = wrong.problem_mark or wrong.context_mark
        raise NoteError(
            file,
            mark.line + 1 if mark else None,
            f"front matter is not YAML: {wrong.problem or wrong}",
            'Put values that hold : # [ { or quotes in "double quotes".',
        ) from None
    except (yaml.YAMLError, RecursionError) as wrong:
        line = front[: getattr(wrong, "position", 0)].count("\n") + 1
        raise NoteError(file, line, f"front matter is not YAML: {wrong}") from None


class _Front:
    """The composed front matter, read key by key, each with its line."""

    def __init__(self, file: str, root: yaml.Node | None) -> None:
        self.file = file
        self._nodes: dict[str, yaml.Node] = {}
        self._read: set[str] = set()
        if not isinstance(root, yaml.MappingNode):
            raise NoteError(file, 2, "front matter must be a list of `key: value` lines")
        for key, value in root.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            if name in self._nodes:
                raise NoteError(file, key.start_mark.line + 1, f"{name} is given twice")
            self._nodes[name] = value

    def line(self, key: str) -> int | None:
        node = self._nodes.get(key)
        return node.start_mark.line + 1 if node else None

    def text(self, key: str) -> tuple[str | None, int | None]:
        self._read.add(key)
        node = self._nodes.get(key)
        return (None, None) if node is None else (self._scalar(node, key), self.line(key))

    def needed(self, key: str) -> str:
        value, line = self.text(key)
        if value is None:
            raise NoteError(self.file, line, f"{key} is missing", f"Add `{key}: …` to the front matter.")
        return value

    def words(self, key: str) -> tuple[str, ...]:
        """A list of texts; one text alone, or several between commas, will do as well."""
        self._read.add(key)
        node = self._nodes.get(key)
        if node is None:
            return ()
        if isinstance(node, yaml.ScalarNode):
            found: Sequence[str | None] = [part.strip() for part in node.value.split(",")]
            found = [part for part in found if part and part.lower() not in _MISSING]
        elif isinstance(node, yaml.SequenceNode):
            found = [self._scalar(item, key, in_list=True) for item in node.value]
        else:
            raise NoteError(self.file, self.line(key), f"{key} must be a list of words")
        return tuple(dict.fromkeys(sanitise(word) for word in found if word))

    def photos(self) -> Iterator[PhotoReference]:
        seen = set()
        for entry, line in self._entries("photos", "file"):
            file = entry.get("file")
            if not isinstance(file, str):
                raise NoteError(self.file, line, "a photo has no file name", "Write `- file: …`.")
            if file not in seen:
                seen.add(file)
                yield PhotoReference(file, *(_text_or_none(entry.get(k)) for k in ("view", "color", "url")))

    def variants(self) -> Iterator[Variant]:
        for entry, line in self._entries("variants", "id"):
            price_text, sizes = _text_or_none(entry.get("price")), entry.get("sizes") or ()
            price = _price(price_text, self.file, line)[0] if price_text else None
            yield Variant(
                id=_text_or_none(entry.get("id")) or "",
                color=_text_or_none(entry.get("color")),
                sizes=(sizes,) if isinstance(sizes, str) else tuple(sizes),
                price=price,
                gtin=_text_or_none(entry.get("gtin")),
            )

    def more(self) -> dict[str, str]:
        """Plain values under keys this version does not know."""
        return {
            key: sanitise(node.value)
            for key, node in self._nodes.items()
            if key not in self._read and isinstance(node, yaml.ScalarNode) and node.value
        }

    def _entries(self, key: str, only: str) -> Iterator[tuple[dict[str, str | tuple[str, ...]], int]]:
        """The mappings of a list; a bare text in it stands for its `only` field."""
        self._read.add(key)
        node = self._nodes.get(key)
        if node is None or (isinstance(node, yaml.ScalarNode) and node.value.lower() in _MISSING):
            return
        if not isinstance(node, yaml.SequenceNode):
            raise NoteError(self.file, self.line(key), f"{key} must be a list")
        for item in node.value:
            line = item.start_mark.line + 1
            if isinstance(item, yaml.ScalarNode):
                yield {only: item.value}, line
            elif isinstance(item, yaml.MappingNode):
                yield dict(self._fields(item, key)), line
            else:
                raise NoteError(self.file, line, f"each of {key} must be `{only}: …` with its fields")

    def _fields(self, item: yaml.MappingNode, key: str) -> Iterator[tuple[str, str | tuple[str, ...]]]:
        for name, value in item.value:
            if isinstance(value, yaml.SequenceNode):
                words = (self._scalar(word, f"{key}.{name.value}", in_list=True) for word in value.value)
                yield name.value, tuple(word for word in words if word)
            else:
                text = self._scalar(value, f"{key}.{name.value}")
                if text is not None:
                    yield name.value, text

    def _scalar(self, node: yaml.Node, key: str, *, in_list: bool = False) -> str | None:
        if not isinstance(node, yaml.ScalarNode):
            kind = "words only" if in_list else "one value, not a list or a group"
            raise NoteError(self.file, node.start_mark.line + 1, f"{key} must hold {kind}")
        value = sanitise(node.value).strip()
        quoted = node.style in ("'", '"')
        return value if value and (quoted or value.lower() not in _MISSING) else None


def _text_or_none(value: str | tuple[str, ...] | None) -> str | None:
    return value if isinstance(value, str) and value else None


def _price(text: str, file: str, line: int | None) -> tuple[Decimal, str | None]:
    """`29`, `29.00`, `"29.00 USD"` or `USD 29`. Feeds, with their locales, are read elsewhere."""
    parts = text.split()
    currency = next((part for part in parts if _CURRENCY.fullmatch(part.upper())), None)
    amounts = [part for part in parts if part is not currency]
    try:
        price = Decimal(amounts[0]) if len(amounts) == 1 else Decimal("NaN")
    except InvalidOperation:
        price = Decimal("NaN")
    if not price.is_finite() or not 0 <= price < 10**9:
        raise NoteError(file, line, f"price {text!r} is not an amount", "Write it as 29.00.")
    return price, currency


def _date(text: str | None, line: int | None, file: str) -> str | None:
    if text is None:
        return None
    try:
        # A time of day may follow the date; the date alone is kept.
        return date.fromisoformat(re.split(r"[T ]", text, maxsplit=1)[0]).isoformat()
    except ValueError:
        raise NoteError(
            file, line, f"snapshot_date {text!r} is not a date", "Write it as 2026-09-14, or leave it out."
        ) from None
