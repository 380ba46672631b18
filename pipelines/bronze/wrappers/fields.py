"""Objects and rows that hold a line in one of their fields: shippers' JSON, exports of searches, tables.

Which field it is, is found by looking into all that are text; the wrapper's name says it, ``json(log)``, with the field
that names the stream behind it, ``json(message by kubernetes.pod.name)``. Of a table these are names of its columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from pipelines.bronze.layout import Unwrapped
from pipelines.bronze.layouts.structured import flat, parsed, row_of, value
from pipelines.bronze.wrappers.lines import OF_SOURCE, Wrapper
from pipelines.bronze.wrappers.pieces import DOCUMENT, ROWS, split

#: Last parts of keys that name who wrote a line, the most particular first.
_SOURCES = (
    *("pod", "pod_name", "pod.name", "podName", "kubernetes.pod", "container_name", "container.name"),
    *("logStreamName", "@logStream", "logStream", "instance", "host.name", "hostname", "host", "Host", "_HOSTNAME"),
)
_SAMPLE = 50
_NESTED_MAX = 3
_TEXT_MIN = 20


def wrappers(lines: Sequence[bytes]) -> Iterator[Wrapper]:
    """Wrappers that the pieces of a file may stand in, with a field each that may hold a line."""
    objects = [fields for line in lines[:400] if line[:1] == b"{" and (fields := parsed(line))]
    if 2 * len(objects) > min(len(lines), 400):
        yield from _of_columns("json", [dict(flat(fields)) for fields in objects[:_SAMPLE]])
        if len(lines) > 1:
            return
    content = b"\n".join(lines)
    if content.lstrip()[:1] in (b"{", b"["):
        for nested in range(1, _NESTED_MAX + 1):
            pieces = split([content], f"{DOCUMENT}{nested}", len(content))
            objects = [
                fields for _, piece in zip(range(_SAMPLE), pieces, strict=False) if (fields := parsed(piece.text))
            ]
            if len(objects) > 1 or (objects and nested == _NESTED_MAX):
                yield from _of_columns(f"{DOCUMENT}{nested}", [dict(flat(fields)) for fields in objects])
        return
    head = row_of(lines[0]) if lines else []
    if len(head) > 1 and all(0 < len(name) < 60 for name in head):
        pieces = split([content + b"\n"], ROWS, len(content))
        rows = [row_of(piece.text) for _, piece in zip(range(_SAMPLE), pieces, strict=False)][1:]
        whole = [dict(zip(head, row, strict=True)) for row in rows if len(row) == len(head)]
        if 2 * len(whole) > len(rows):
            yield from _of_columns(ROWS, whole, head)


def _of_columns(kind: str, objects: Sequence[Mapping[str, Any]], head: Sequence[str] = ()) -> Iterator[Wrapper]:
    keys = dict.fromkeys(key for fields in objects for key in fields)
    texts = [key for key in keys if _is_text([fields.get(key) for fields in objects])]
    sources = [
        key
        for last in _SOURCES
        for key in keys
        if (key == last or key.endswith(f".{last}")) and all(isinstance(fields.get(key), str) for fields in objects)
    ]
    for key in texts:
        by = next((source for source in sources if source != key), None)
        if kind == ROWS:
            place = f"{head.index(key)}:{len(head)}"
            yield of_name(f"{ROWS}({place}" + (f" by {head.index(by)})" if by else ")"))
        else:
            yield of_name(f"{kind}({key}" + (f" by {by})" if by else ")"))


def _is_text(items: Sequence[Any]) -> bool:
    texts = [item for item in items if isinstance(item, str)]
    return 2 * len(texts) > len(items) and max(map(len, texts)) >= _TEXT_MIN


@lru_cache(maxsize=256)
def of_name(name: str) -> Wrapper:
    """The wrapper of a name that `wrappers` gave.

    Raises:
        ValueError: it is none.
    """
    match = re.fullmatch(rf"(json|{ROWS}|{DOCUMENT}\d)\(([^()]+?)(?: by ([^()]+))?\)", name)
    if match is None:
        raise ValueError(f"no wrapper: {name}")
    kind, key, by = match.groups()
    if kind == ROWS:
        place, _, width = key.partition(":")
        unwrap = partial(_cell, int(place), int(width), int(by) if by else None)
        return Wrapper(name, "", unwrap, ROWS)
    return Wrapper(name, "", partial(_field, key, by), "" if kind == "json" else kind)


def _field(key: str, by: str | None, piece: bytes) -> Unwrapped | None:
    fields = parsed(piece)
    text = value(fields, key)
    if not isinstance(text, str):
        return None
    source = value(fields, by) if by else None
    stream = fields.get("stream")
    name = source.encode(errors="replace") if isinstance(source, str) else b""
    if isinstance(stream, str):
        name += OF_SOURCE + stream.encode(errors="replace")
    goes_on = str(fields.get("logtag", "F")).startswith("P")
    return name, text.removesuffix("\n").encode(errors="replace"), goes_on


def _cell(place: int, width: int, by: int | None, piece: bytes) -> Unwrapped | None:
    row = row_of(piece)
    if len(row) != width:
        return None
    return row[by].encode(errors="replace") if by is not None else b"", row[place].encode(errors="replace"), False
