"""Objects and collections as Java and Scala print them, read wholly or not at all.

In a ``toString`` every value has its place. So a reader consumes all of it, in the order of a release, or raises
ValueError: a rest could belong to a value (``isr=1,3`` was once read as ``isr=1``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from highwater.pipelines.grammars.values import (
    COLLECTION_NAMES,
    PARTITION,
    i32,
    ints,
    match_whole,
    optional_i32,
    parse_partition,
)
from highwater.schemas.package_data import read_toml

_PARTITION = re.compile(PARTITION, re.ASCII)
_MAP = re.compile(r"\{(.*)\}|(?:Map|HashMap|ListMap|TreeMap|LinkedHashMap)\((.*)\)", re.ASCII)
_OBJECT = re.compile(r"(?P<name>\w*)(?:\((?=.*\)$)|\[(?=.*\]$))(?P<inside>.*).", re.ASCII)

#: Fields of an object in the order printed, as a pattern: not all releases have all of them.
Forms = Mapping[str, str]

_FORMS: Final[dict[str, Forms]] = {
    name: {class_name: " ".join(form.split("\n")) for class_name, form in forms.items()}
    for name, forms in read_toml(__package__, "printed.toml").items()
}
STATES: Final = _FORMS["states"]
PENDING: Final = _FORMS["pending"]
COMMITTED: Final = _FORMS["committed"]
BROKER_STATE: Final = _FORMS["broker_state"]
FETCH_DATA: Final = _FORMS["fetch_data"]
PARTITION_CHANGE: Final = _FORMS["partition_change"]
BROKER_CHANGE: Final = _FORMS["broker_change"]
ASSIGNMENT: Final = _FORMS["assignment"]


def split(text: str, separator: str = ", ") -> list[str]:
    """Split a text at separators outside of all brackets. Empty for an empty text."""
    parts: list[str] = []
    pending: list[str] = []
    depth = 0
    for piece in text.split(separator) if text else ():
        pending.append(piece)
        for char in piece:
            if char in "([{":
                depth += 1
            elif char in ")]}":
                depth -= 1
                if depth < 0:
                    raise ValueError(f"brackets: {text[:80]}")
        if not depth:
            parts.append(separator.join(pending))
            pending.clear()
    if pending:
        raise ValueError(f"brackets: {text[:80]}")
    return parts


def split_items(text: str) -> list[str]:
    """Return the elements of a printed collection: ``List(a, b)``, ``[a, b]``, or ``a,b``."""
    name, bracket, inside = text.partition("(")
    if bracket and text.endswith(")") and name in COLLECTION_NAMES:
        return _split_elements(inside[:-1])
    if text.startswith("[") and text.endswith("]"):
        try:
            return _split_elements(text[1:-1])
        except ValueError:
            pass  # bare pairs: [a,0],[b,1]
    if " " in text:
        raise ValueError(f"no collection: {text[:80]}")
    return split(text, ",")


def _split_elements(inside: str) -> list[str]:
    """Return the elements. Java and Scala print a blank after a comma, ``mkString(",")`` does not."""
    parts = split(inside)
    return parts if len(parts) > 1 else split(inside, ",")


def parse_mapping(text: str, arrow: str) -> dict[str, str]:
    """Return the entries of a printed map: ``{k=v, k=v}``, ``Map(k -> v)``.

    Args:
        arrow: sign between key and value.
    """
    match = match_whole(_MAP, text, "map")
    entries: dict[str, str] = {}
    for entry in split(match[1] or match[2] or ""):
        key, between, value = entry.partition(arrow)
        if not between or key in entries:
            raise ValueError(f"no entry of a map: {entry[:80]}")
        entries[key] = value
    return entries


def parse_partitions(text: str) -> list[tuple[str, int]]:
    """Return (topic, partition) of a printed collection.

    Raises:
        ValueError: a partition occurs twice.
    """
    names = [text] if _PARTITION.fullmatch(text) else split_items(text)
    listed = [parse_partition(match_whole(_PARTITION, name, "partition")[0]) for name in names]
    if len(set(listed)) != len(listed):
        raise ValueError(f"a partition twice: {text[:80]}")
    return listed


def parse_fields(text: str, forms: Forms) -> dict[str, str]:
    """Return the values of ``Name(key=value, key=value)`` by key; a Java record has ``[..]``.

    Raises:
        ValueError: `forms` has no such name, or its form has other keys or another order.
    """
    object_ = match_whole(_OBJECT, text, "object")
    name = object_["name"]
    values: dict[str, str] = {}
    keys = []
    for part in split(object_["inside"]):
        key, _, value = part.partition("=")
        keys.append(key)
        values[key] = value
    if name not in forms or re.fullmatch(forms[name], " ".join(keys)) is None:
        raise ValueError(f"not a {' or '.join(forms)} as any release prints it: {text[:80]}")
    return values


def parse_isr(state: Mapping[str, str]) -> list[int]:
    """Return the ISR from parsed fields: ``isr``, or ``isrWithBrokerEpoch`` since 3.5."""
    listed = state.get("isrWithBrokerEpoch")
    if listed is None:
        return ints(state["isr"])
    ids = [i32(parse_fields(item, BROKER_STATE)["brokerId"]) for item in split_items(listed)]
    if len(set(ids)) != len(ids):
        raise ValueError(f"a replica twice: {listed[:80]}")
    return ids


def parse_partition_epoch(state: Mapping[str, str]) -> int | None:
    """Return the partition epoch from parsed fields. Before 2.8 it is called ``zkVersion``. None if missing."""
    return optional_i32(state.get("partitionEpoch", state.get("zkVersion")))
