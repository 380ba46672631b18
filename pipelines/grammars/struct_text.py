"""Grammar of ``Struct.toString``: how Kafka up to 2.7 prints the body of a request or response.

    {group_id=g1,generation_id=1,topics=[{name=orders,partitions=[{partition_index=0,error_code=0,_tagged_fields={}}]}]}

Nothing is quoted, so a text that a client chose can look like structure. What cannot be told apart is refused: a key
that comes twice, a brace or bracket in a text, a text that runs on where a key or the end has to follow.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

Json = dict[str, Any]

#: Bodies nest four deep (request, topic, partition, transaction's offsets); hostile text may nest further.
_DEPTH_MAX: Final = 12

_KEY: Final = re.compile(r"(\w+)=")
_TEXT: Final = re.compile(r"[^{}\[\]]*?(?=,[A-Za-z_]\w*=|[}\]])")
_MESSAGE: Final = re.compile(r"[^{}]*?(?=,[A-Za-z_]\w*=|\})")
_ELEMENT: Final = re.compile(r"[^,{}\[\]]*")
_BUFFER: Final = re.compile(r"java\.nio\.\w+\[[^{}\[\]]*\]")
_INTEGER: Final = re.compile(r"-?\d{1,19}")
_WORDS: Final = {"true": True, "false": False, "null": None}
_NO_RENAMES: Final[Mapping[str, str]] = MappingProxyType({})

#: Texts: one that reads like a number stays a text.
_NEVER_NULL: Final = frozenset(
    ("topic", "name", "topic_name", "group_id", "consumer_group_id", "member_id", "host", "host_name")
)
_TOPICS: Final = frozenset(("topic", "name", "topic_name"))
_NULLABLE: Final = frozenset(
    ("transactional_id", "group_instance_id", "assignment", "member_assignment", "protocol_type", "protocol_name")
)
#: Texts of brokers, with whatever an exception said.
_MESSAGES: Final = frozenset(("error_message", "batch_index_error_message"))
_TEXTS: Final = _NEVER_NULL | _NULLABLE | _MESSAGES


class BadStruct(ValueError):
    """A text that is not exactly one struct."""


def read_struct(text: str, renames: Mapping[str, str] = _NO_RENAMES, stop: Collection[str] = ()) -> Json:
    """Read a text that is one struct, as the JSON form of the request log would show it.

    Args:
        text: from the opening brace to the closing one.
        renames: names of the JSON form by names of fields, where the one is not the other in camel case.
        stop: the first field of these ends the reading: it and what follows are left out.

    Returns:
        Values by name. Integers, booleans and nulls as such, texts and buffers as text; tagged fields are left out.

    Raises:
        BadStruct: if the text is cut, followed by more, or can be read in two ways.
    """
    if not text.startswith("{") or not text.endswith("}"):
        raise BadStruct("not a struct")
    values, end = _struct(text, 0, renames, stop, 1)
    if end != len(text) and not stop:
        raise BadStruct(f"text after its end, at {end}")
    return values


@lru_cache(maxsize=1000)
def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def _struct(text: str, at: int, renames: Mapping[str, str], stop: Collection[str], depth: int) -> tuple[Json, int]:
    if depth > _DEPTH_MAX:
        raise BadStruct("nested too deep")
    values: Json = {}
    at += 1
    if text.startswith("}", at):
        return values, at + 1
    while True:
        match = _KEY.match(text, at)
        if match is None:
            raise BadStruct(f"no key at {at}")
        key = match[1]
        if key in stop:
            return values, match.end()
        name = renames.get(key) or _camel(key)
        if name in values:
            raise BadStruct(f"{key} twice")
        value, at = _value(text, match.end(), key, renames, depth)
        values[name] = value
        if text.startswith("}", at):
            values.pop("TaggedFields", None)
            return values, at + 1
        if not text.startswith(",", at):
            raise BadStruct(f"neither a comma nor the end at {at}")
        # Tagged fields are a map of Java's, which puts a space between its entries.
        at += 2 if text.startswith(" ", at + 1) else 1


def _value(text: str, at: int, key: str, renames: Mapping[str, str], depth: int) -> tuple[Any, int]:
    if key not in _TEXTS:
        if text.startswith("{", at):
            return _struct(text, at, renames, (), depth + 1)
        if text.startswith("[", at):
            return _array(text, at, renames, depth)
    buffer = _BUFFER.match(text, at)
    if buffer is not None:
        return buffer[0], buffer.end()
    match = (_MESSAGE if key in _MESSAGES else _TEXT).match(text, at)
    if match is None:
        raise BadStruct(f"{key} does not end")
    return _scalar(key, match[0]), match.end()


def _scalar(key: str, raw: str) -> Any:
    if key in _NEVER_NULL:
        if not raw and key in _TOPICS:
            raise BadStruct(f"no {key}")
        return raw
    if key in _NULLABLE or key in _MESSAGES:
        return None if raw == "null" else raw
    if _INTEGER.fullmatch(raw):
        return int(raw)
    return _WORDS.get(raw, raw)


def _array(text: str, at: int, renames: Mapping[str, str], depth: int) -> tuple[list[Any], int]:
    values: list[Any] = []
    at += 1
    if text.startswith("]", at):
        return values, at + 1
    while True:
        value: Any
        if text.startswith("{", at):
            value, at = _struct(text, at, renames, (), depth + 1)
        else:
            match = _BUFFER.match(text, at) or _ELEMENT.match(text, at)
            assert match is not None  # an element may be empty
            value, at = match[0], match.end()
            value = int(value) if _INTEGER.fullmatch(value) else value
        values.append(value)
        if text.startswith("]", at):
            return values, at + 1
        if not text.startswith(",", at):
            raise BadStruct(f"neither a comma nor the array's end at {at}")
        at += 1
