"""Containers of records: JSON in any nesting, tables with any delimiter, stanzas of named lines.

Each becomes rows, which are leaves by path (`pipelines.bronze.layouts.structured`). A step picks the text of a record
out of each row, or hands the row on as an object with the record's parts. Which leaf that is, and which one names the
source, the values decide. Pure.
"""

from __future__ import annotations

import csv
import html
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Any

import msgspec
import orjson

from highwater.pipelines.bronze.layout import Item
from highwater.pipelines.bronze.layouts.anchors import is_timed
from highwater.pipelines.bronze.layouts.literals import load_object
from highwater.pipelines.bronze.layouts.structured import (
    Row,
    arrays,
    columns_of,
    layouts,
    names_node,
    pairs,
    parsed,
    rows,
    text_columns,
    value,
)
from highwater.pipelines.bronze.wrappers.flattened import restored
from highwater.pipelines.bronze.wrappers.labels import label_column
from highwater.pipelines.bronze.wrappers.pieces import DOCUMENT, ROWS, STANZA, split
from highwater.pipelines.bronze.wrappers.step import OF_SOURCE, Step

_SAMPLE = 400
_DELIMITERS = ",\t;|"
#: Between the cells of a table with a rule below its names, as in Markdown; the rule, and what parts its rows.
_RULED = "| "
_RULE = re.compile(rb"(?=[-: ]*+[|+])[ |+:]*+--[-:|+ ]*+\r?")
_PIPE = re.compile(r"(?<!\\)\|")
#: Lines before a document, at most.
_BEFORE_MAX = 20
#: Nesting of objects that a document is cut into, at most.
_NESTED_MAX = 8
_BYTES_MAX = 1 << 24
#: Bytes of a line of a text in which a record of its own has its time.
_TIMED_WITHIN = 40
#: Names before values on one line, at least, and the share of the lines that have each of them.
_NAMES_MIN, _NAMED_SHARE = 4, 0.7
_NAME_OF_VALUE = re.compile(rb"(?<!\S)([A-Za-z@_][\w.@-]{1,40})[:=](?=\S)")
_NAME_FIRST = re.compile(rb"\W{0,8}" + _NAME_OF_VALUE.pattern.partition(b")")[2])
_LINE_BREAK = frozenset(("line-max",))
_STREAMS = frozenset(("stdout", "stderr"))
_PARTS = frozenset("PF")
_JSON_BEGINS = re.compile(rb"\s*(?:\{\s*[\"'\w]|\[\s*(?:\{\s*[\"'\w]|\[|[\"']))")
_STRING_OR_SIGN = re.compile(rb"\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z)|'(?:[^'\\\n]|\\.)*+(?:'|\\?\Z)|[{}\[\],]")
_NAMED = re.compile(
    rb"([ \t]*(?:-> |- |\* )?)([A-Za-z@_](?:[\w .@/\[\]#-]{0,59}?[\w.@/\[\]#-])??)[ \t]*+"
    rb"(:(?= |$)|=(?!=)|\|(?= ))[ \t]?(.*)"
)


#: A name, and the number of bytes of its value, which has line ends, as systemd exports it.
_SIZED = re.compile(rb"^([A-Z_]\w{0,63})\n([^\0]{1,4}\0{4,7})(?<=\n.{8})", re.MULTILINE | re.DOTALL)
_ELEMENT = re.compile(rb"\s*<([A-Za-z][\w:.-]*)(?=[\s>])")
_TAG = re.compile(rb"<[A-Za-z][^<>]*>")
_ATTRIBUTE = re.compile(r"(?<![\w:.-])([\w:.-]++)=\"([^\"]*+)\"")
_WITHIN = re.compile(
    r"<([A-Za-z][\w:.-]*+)(?:\s[^<>]*+)?>\s*+"
    r"(?:<!\[CDATA\[((?:[^\]<]++|\](?!\]>)|<(?!!\[CDATA))*+)\]\]>|([^<]*+))\s*+</\1>"
)
#: Words with a number at their end.
_NUMBERED = re.compile(rb"\W*+(?!\d\W*\Z)\w++(?: ++\w++)*+(?:(?<=\d)| *+#\d++)\W*+")
#: Times and levels, which no column has for a name.
_NO_NAME = re.compile(r"\d\d:\d\d|\d{10}|\A(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\Z")


class Rows(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How a container becomes rows, and which fields are used. It is the argument in a step's name."""

    text: str = ""  #: path of the text of a record; empty if the row is one
    by: str = ""  #: path of the source
    array: str = ""  #: path of the array whose elements are rows
    document: int | None = None  #: objects and arrays around each piece of a document; None: a value on each line
    stream: str = ""  #: path of the stream
    part: str = ""  #: path of the field that marks a text continued in the next row
    is_ended: bool = False  #: texts end with a line end, unless they continue
    delimiter: str = ""  #: of a table
    head: tuple[str, ...] = ()  #: names of a table's columns
    pairs: bool = False  #: lines are pairs of names and values
    names: tuple[str, ...] = ()  #: names before the values of a line, which have blanks
    lines: bool = False  #: a text has several records: each of its lines is an item
    begins: str = ""  #: pattern of the line that begins a stanza or an element
    element: bool = False  #: a row is an XML element: its attributes and the texts of its elements


def documents(lines: Sequence[bytes]) -> Iterator[Step]:
    """Yield steps for the JSON that lines are. Of the cuts of a document, the ones that keep a source come first."""
    shapes = {step: shape_named(step.name) for step in _steps(_json_shapes(lines), lines)}
    yield from sorted(shapes, key=lambda step: shapes[step].document is not None and not shapes[step].by)


def tables(lines: Sequence[bytes]) -> Iterator[Step]:
    """Yield steps that extract records from tables."""
    return _steps(chain(_tables(lines), _named_values(lines)), lines)


def stanzas(lines: Sequence[bytes]) -> Iterator[Step]:
    """Yield steps that extract records from stanzas: named lines, repeated per record."""
    return _steps(_stanzas(lines), lines)


def elements(lines: Sequence[bytes]) -> Iterator[Step]:
    """Yield steps that extract records from XML."""
    return _steps(_elements(lines), lines)


def _steps(shapes: Iterator[Rows], lines: Sequence[bytes]) -> Iterator[Step]:
    for shape in shapes:
        table = _sampled(shape, lines)
        if not table:
            continue
        columns = columns_of(table)
        for text in text_columns(columns)[:3]:
            told = _told(shape, text, columns)
            yield step_of(told)
            if any(isinstance(item, str) and item.endswith("\n") for item in columns[text]):
                yield step_of(msgspec.structs.replace(told, is_ended=not told.is_ended))
        is_plain = not shape.array and shape.document is None and step_of(shape).name.startswith("json ")
        texts = [" ".join(map(_bracketed, row.values())) for row in table]
        by = label_column(columns, texts) or ""
        if (by or not is_plain or any("[" in path for path in table[0])) and any(True for _ in layouts(table)):
            yield step_of(msgspec.structs.replace(shape, by=by))


def _bracketed(item: Any) -> str:
    """Return a text. A component with its node is put in brackets, as in Kafka messages. Empty for other values."""
    return f"[{item}]" if names_node(item) else item if isinstance(item, str) else ""


def _told(shape: Rows, text: str, columns: Mapping[str, Sequence[Any]]) -> Rows:
    """Return the shape with the path of the record's text, and the paths of columns that describe it."""
    items = columns[text]
    texts = [item if isinstance(item, str) else "" for item in items]
    others = {path: values for path, values in columns.items() if path != text}
    said = {path: {item for item in values if item is not None} for path, values in others.items() if _hashable(values)}
    stream = next((path for path, values in said.items() if values and values <= _STREAMS), "")
    part = next((path for path, values in said.items() if values and (values <= _PARTS or values <= _LINE_BREAK)), "")
    ended = sum(text.endswith("\n") for text in texts)
    by = label_column({path: values for path, values in others.items() if path not in (stream, part)}, texts)
    is_several = any(
        is_timed(line, _TIMED_WITHIN) for item in texts for line in item.encode(errors="replace").split(b"\n")[1:]
    )
    return msgspec.structs.replace(
        shape, text=text, by=by or "", stream=stream, part=part, is_ended=2 * ended > len(texts), lines=is_several
    )


def _hashable(items: Sequence[Any]) -> bool:
    return not any(isinstance(item, dict) for item in items)


def _sampled(shape: Rows, lines: Sequence[bytes]) -> list[Row]:
    """Return the rows of lines by a shape. Empty if too few lines fit it."""
    if shape.document is None and not shape.begins and not shape.head:
        texts = [line for line in lines if line.strip()]
        found = [list(_rows_of(shape, line)) for line in texts[:_SAMPLE]]
        is_some = 2 * sum(map(bool, found)) > len(found)
        return [row for several in found for row in several][: 2 * _SAMPLE] if is_some else []
    pieces = split([b"\n".join(lines) + b"\n"], _pieces(shape), _BYTES_MAX)
    found = [list(_rows_of(shape, piece.text)) for _, piece in zip(range(_SAMPLE), pieces, strict=False)]
    if shape.head:
        found = found[1:] if shape.head[0] != "0" else found
        if 2 * sum(map(bool, found)) < len(found):
            return []
    return [row for several in found for row in several][: 2 * _SAMPLE]


def is_json(lines: Sequence[bytes]) -> bool:
    """Return True if lines are JSON."""
    return any(True for _ in _json_shapes(lines))


def is_document(lines: Sequence[bytes]) -> bool:
    """Return True if lines are JSON whose objects are containers, not records."""
    shapes = list(_json_shapes(lines))
    return bool(shapes) and (len(shapes) > 1 or shapes[0] != Rows())


def _json_shapes(lines: Sequence[bytes]) -> Iterator[Rows]:
    texts = [line for line in lines if line.strip()][:_SAMPLE]
    if 2 * sum(map(bool, map(pairs, texts))) > len(texts):
        yield Rows(pairs=True)
        return
    whole = [item for line in texts if _JSON_BEGINS.match(line) and (item := _json(line)) is not None]
    if 2 * len(whole) > len(texts):
        yield from (Rows(array=array) for array in dict.fromkeys(found for item in whole[:5] for found in arrays(item)))
        if len(texts) > 1:
            return
    # What a session printed before an object is not a part of it.
    content = b"\n".join(lines)
    if not _JSON_BEGINS.match(content):
        begun = next((number for number, line in enumerate(lines[:_BEFORE_MAX]) if line[:1] in (b"[", b"{")), None)
        content = b"" if begun is None else b"\n".join(lines[begun:])
    if not _JSON_BEGINS.match(content):
        return
    objects = [piece.text for piece in split([content], f"{DOCUMENT}0", len(content))]
    if len(objects) > 1 and (item := _json(objects[0])) is not None:
        yield from (Rows(array=array, document=0) for array in arrays(item))
    elif (root := _json(_closed(content))) is not None:
        for array in arrays(root):
            yield from _cuts(array)


def _cuts(array: str) -> Iterator[Rows]:
    """Yield the ways to split a document at an array: into its elements, or into the objects around it."""
    steps = re.findall(r"[^.\[\]]+|\[[^\]]*+(?:\]|\Z)", array)
    for depth in range(min(len(steps), _NESTED_MAX), -1, -1):
        inner = "".join(step if step.startswith("[") else f".{step}" for step in steps[depth:]).removeprefix(".")
        if depth == 0 or steps[depth - 1] == "[]":
            yield Rows(array=inner, document=depth)


def _closed(content: bytes) -> bytes:
    """Return the start of a truncated document, closed after its last complete value."""
    open_signs: list[bytes] = []
    end = depth = 0
    for match in _STRING_OR_SIGN.finditer(content):
        sign = match[0]
        if sign in (b"{", b"["):
            open_signs.append(b"}" if sign == b"{" else b"]")
        elif sign in (b"}", b"]") and open_signs:
            open_signs.pop()
            end, depth = match.end(), len(open_signs)
        elif sign == b",":
            end, depth = match.start(), len(open_signs)
    # Only signs that open come behind the last whole value.
    return content[:end] + b"".join(reversed(open_signs[:depth]))


def _json(text: bytes) -> Any:
    try:
        return load_object(text)
    except ValueError:
        return None


def _tables(lines: Sequence[bytes]) -> Iterator[Rows]:
    """Yield shapes of tables with a header line. Without a header, columns are numbered."""
    texts = [line for line in lines if line.strip()]
    ruled = next((number for number, line in enumerate(texts[:_SAMPLE]) if _RULE.fullmatch(line)), 0)
    if ruled and len(head := _cells(texts[ruled - 1], _RULED)) > 1:
        yield Rows(delimiter=_RULED, head=tuple(head))
    for delimiter in _DELIMITERS:
        if len(texts) < 2 or delimiter.encode() not in texts[0]:
            continue
        head = _cells(texts[0], delimiter)
        if len(head) < 2 or len(head) > 200:
            continue
        is_named = all(0 < len(name) < 60 and _NO_NAME.search(name) is None for name in head)
        names = [name.strip() if is_named else str(number) for number, name in enumerate(head)]
        counts = Counter(names)
        unique = [name if counts[name] == 1 else f"{name} {number}" for number, name in enumerate(names)]
        if is_named or texts[0].startswith(b'"'):
            yield Rows(delimiter=delimiter, head=tuple(unique))


def _named_values(lines: Sequence[bytes]) -> Iterator[Rows]:
    """Yield the shape of lines that have the same names before their values, as copies of documents have."""
    begun = filter(_NAME_FIRST.match, lines[:_SAMPLE])
    found = [Counter(names) for line in begun if len(set(names := _NAME_OF_VALUE.findall(line))) >= _NAMES_MIN]
    counts = Counter(name for names in found for name, count in names.items() if count == 1)
    often = tuple(name.decode() for name, count in counts.items() if count >= _NAMED_SHARE * len(found))
    if len(found) > 1 and len(often) >= _NAMES_MIN:
        yield Rows(names=often)


@lru_cache(maxsize=64)
def _before_value(names: tuple[str, ...]) -> re.Pattern[bytes]:
    return re.compile(rb"(?:\A|(?<=\s))(" + b"|".join(re.escape(name.encode()) for name in names) + rb")[:=]")


def _values(names: tuple[str, ...], line: bytes) -> Row:
    """Return the values of a line by name. Empty if it has hardly any of the names."""
    found = list(_before_value(names).finditer(line))
    if len(found) < _NAMED_SHARE * len(names):
        return {}
    ends = [match.start() for match in found[1:]] + [len(line)]
    return {
        match[1].decode(): restored(line[match.end() : end].strip()).decode(errors="replace")
        for match, end in zip(found, ends, strict=True)
    }


@lru_cache(maxsize=1)
def _dialect() -> None:
    csv.field_size_limit(1 << 30)


def _cells(text: bytes, delimiter: str) -> list[str]:
    """Return the cells of a row. Empty if the text is not one row."""
    if delimiter == _RULED:
        cells = _PIPE.split(text.strip(b" \r").removeprefix(b"|").removesuffix(b"|").decode(errors="replace"))
        return [cell.strip().strip("`").replace("\\|", "|").replace("<br>", "\n") for cell in cells]
    _dialect()
    try:
        found = list(csv.reader(text.decode(errors="replace").splitlines(keepends=True), delimiter=delimiter))
    except csv.Error:
        return []
    return found[0] if len(found) == 1 else []


def _stanzas(lines: Sequence[bytes]) -> Iterator[Rows]:
    """Yield shapes of stanzas: the same names repeat, each on its own line."""
    texts = lines[: 10 * _SAMPLE]
    names = [
        (match[2], match[0][: match.end(2)])
        for line in texts
        if (match := _NAMED.fullmatch(line)) and not _is_log(line)
    ]
    counts = Counter(name for name, _ in names)
    often = [name for name, count in counts.most_common(60) if count > 1 and 8 * count > max(counts.values())]
    dashes = sum(line.rstrip() == b"---" for line in texts)
    if len(often) < 2 or 3 * sum(counts[name] for name in often) < len(texts):
        return
    if dashes > 1:
        yield Rows(begins=r"---\s*\Z")
    first = dict(reversed(names))
    # A stanza has several names: lines that begin with one name each are in frames.
    often = [name for name in often if 2 * counts[name] <= sum(counts[name] for name in often)]
    for name in sorted(often, key=list(first)[::-1].index)[:4]:
        yield Rows(begins=re.escape(first[name]).decode() + r"[ \t]*[:=|]")
    numbered = Counter(re.sub(rb"\d+", b"#", line) for line in texts if _NUMBERED.fullmatch(line))
    for shape, count in numbered.most_common(2):
        if 2 * count >= max(counts.values()):
            yield Rows(begins=re.escape(shape).decode().replace(r"\#", r"\d+", 1) + r"\Z")


def _elements(lines: Sequence[bytes]) -> Iterator[Rows]:
    """Yield the shape of XML: the most frequent outer element."""
    begun = Counter(match[1] for line in lines if (match := _ELEMENT.match(line)))
    outer = [name for name, count in begun.items() if 2 * count > max(begun.values()) and count > 1]
    for name in outer[:2]:
        yield Rows(begins=rf"\s*<{re.escape(name.decode())}\b", element=True)


def _parts(text: bytes) -> Row:
    """Return the attributes of an element and the texts of inner elements. Repeated names get numbers."""
    tag = _TAG.search(text)
    row: Row = {}
    if tag is not None:
        row = {name: html.unescape(said) for name, said in _ATTRIBUTE.findall(tag[0].decode(errors="replace"))}
    found = _WITHIN.findall(text.decode(errors="replace"))
    counts = Counter(name for name, _, _ in found)
    for number, (name, data, said) in enumerate(found):
        row[name if counts[name] == 1 else f"{name} {number}"] = data or html.unescape(said)
    return row


def _is_log(line: bytes) -> bool:
    return line[:1] == b"\t" or re.match(rb"\s*\[?\d{4}-\d\d-\d\d", line) is not None


def _fields(text: bytes) -> Row:
    """Return the named lines of a stanza. Other lines continue the previous one."""
    row: Row = {}
    while (sized := _SIZED.search(text)) is not None:
        end = sized.end() + int.from_bytes(sized[2], "little")
        row[sized[1].decode()] = text[sized.end() : end].decode(errors="replace")
        text = text[: sized.start()] + text[end + 1 :]
    name, outer = "", ""
    for line in text.split(b"\n"):
        match = _NAMED.fullmatch(line)
        is_more = name and len(row[name]) > 7 and (match is None or line[:1] == b"\t" or _is_log(line))
        if match is None or is_more:
            if name:
                row[name] += "\n" + line.decode(errors="replace")
            continue
        key = match[2].decode(errors="replace")
        rest = match[4].decode(errors="replace")
        if not match[1]:
            outer = "" if rest else key
        name = f"{outer}.{key}" if match[1] and outer else key
        row[name] = rest
    return {name: _unquoted(said) for name, item in row.items() if (said := item.rstrip("\n"))}


def _unquoted(text: str) -> str:
    """Return a YAML scalar without quotes and folds. Other texts unchanged."""
    if text[:1] == "'" and text.endswith("'") and len(text) > 1:
        return re.sub(r"\n[ \t]*", " ", text[1:-1]).replace("''", "'")
    if text[:1] == '"' and text.endswith('"') and len(text) > 1:
        try:
            return str(json.loads(re.sub(r"\\?\n[ \t]*\\?", " ", text)))
        except ValueError:
            return text
    return text


def _rows_of(shape: Rows, piece: bytes) -> Iterator[Row]:
    if shape.head:
        cells = _cells(piece, shape.delimiter)
        is_text = shape.delimiter != _RULED or (cells != list(shape.head) and any(cell.strip("-: ") for cell in cells))
        if len(cells) == len(shape.head) and is_text:
            yield dict(zip(shape.head, cells, strict=True))
    elif shape.begins or shape.pairs or shape.names:
        fields = _parts if shape.element else _fields
        row = fields(piece) if shape.begins else pairs(piece) if shape.pairs else _values(shape.names, piece)
        if row:
            yield row
    elif (item := _json(piece.strip().removesuffix(b","))) is not None and isinstance(item, dict | list):
        yield from rows(item, shape.array)


def _pieces(shape: Rows) -> str:
    if shape.head and shape.delimiter != _RULED:
        return ROWS
    if shape.begins:
        return STANZA + shape.begins
    return "" if shape.document is None else f"{DOCUMENT}{shape.document}"


def step_of(shape: Rows) -> Step:
    """Return the step that extracts records from a container of this shape."""
    kinds = {"table": shape.head, "stanza": shape.begins, "logfmt": shape.pairs, "named": shape.names}
    kind = next((kind for kind, is_given in kinds.items() if is_given), "json")
    is_flat = kind == "json" and not shape.array and not shape.lines and "[" not in shape.text + shape.by
    unwrap = partial(_flat, shape) if is_flat and shape.text else partial(_items, shape)
    return Step(f"{kind} {msgspec.json.encode(shape).decode()}", unwrap, _pieces(shape), is_entry=not shape.lines)


def hands_on(step: Step) -> bool:
    """Return True if a step yields rows as objects, not texts."""
    return step.is_entry and not shape_named(step.name).text


def of_name(name: str) -> Step:
    """Return the step for a name that `step_of` created.

    Raises:
        ValueError: the name is invalid.
    """
    return step_of(shape_named(name))


def shape_named(name: str) -> Rows:
    """Return the shape in a step's name.

    Raises:
        ValueError: the name is invalid.
    """
    try:
        return msgspec.json.decode(name.partition(" ")[2], type=Rows)
    except msgspec.DecodeError as error:
        raise ValueError(f"invalid container {name!r}: {error}") from None


def _flat(shape: Rows, piece: bytes) -> list[Item] | None:
    """Return the text of an object without examining its other fields: the fast path. None if it does not fit."""
    fields = parsed(piece)
    get: Callable[[str], Any] = partial(value, fields)
    item = _item(shape, get)
    return None if item is None else [item]


def _items(shape: Rows, piece: bytes) -> list[Item] | None:
    found: list[Item] = []
    at = 0
    several = list(_rows_of(shape, piece))
    for row in several:
        if not shape.text:
            by = row.get(shape.by) if shape.by else None
            source = by.encode(errors="replace") if isinstance(by, str) else b""
            item: Item | None = (source, json.dumps(row, default=str).encode(errors="replace"), False, at)
        else:
            item = _item(shape, row.get)
        if item is None:
            continue
        for text in (line.strip(b"`") for line in item[1].split(b"\n")) if shape.lines else (item[1],):
            if len(several) > 1 or shape.lines:
                needle = next((said for said in row.values() if isinstance(said, str) and len(said) > 20), "")
                needle = text.decode(errors="replace") if shape.text else needle
                place = piece.find(orjson.dumps(needle[:60])[1:-1], at)
                at = max(at + 1 if found else 0, place)
            found.append((item[0], text, item[2], at))
    return found or None


def _item(shape: Rows, get: Callable[[str], Any]) -> Item | None:
    text = get(shape.text)
    if isinstance(text, list):
        try:
            text = bytes(text).decode(errors="replace")
        except (TypeError, ValueError):
            return None
    if not isinstance(text, str):
        return None
    by = get(shape.by) if shape.by else None
    name = by.encode(errors="replace") if isinstance(by, str) else b""
    if shape.stream and isinstance(stream := get(shape.stream), str):
        name += OF_SOURCE + stream.encode(errors="replace")
    said = get(shape.part) if shape.part else None
    is_partial = said in ("P", "line-max") or (shape.is_ended and not text.endswith("\n"))
    text = text.removesuffix("\n").replace("\r\n", "\n")
    return name, text.encode(errors="replace"), is_partial, 0
