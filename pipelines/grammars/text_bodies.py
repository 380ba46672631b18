"""Bodies of requests and responses in text (``Struct.toString``, up to 2.7) as the Structs of their API and version.

    {group_id=g1,generation_id=1,topics=[{name=orders,partitions=[{partition_index=0,error_code=0,_tagged_fields={}}]}]}

`body_shapes` declares the fields of a body; this module compiles them: each level of a body is a few patterns, one up
to each array, matched where the one before ended. Every field has a fixed position, so a body with a missing, new,
respelt or repeated field, or a value of another type, does not match.

A field's name of the JSON form is its struct's in camel case since 2.4 (KAFKA-7609, generated protocol classes). Other
names of the hand-written schemas before are in `STRUCT_NAMES`. Nothing is quoted, so a text that a client chose can
look like structure. Ambiguous texts are rejected: a brace or bracket in a text, a comma followed by a key.

Source: ``Protocol`` (0.9 to 0.11), the schemas in ``requests.*Request`` and ``*Response`` (1.0 to 2.3), the message
definitions (2.4 to 2.7), ``FileRecords.toString``, ``MemoryRecords.toString``, ``ProduceRequest.toString(verbose)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct, ValidationError, convert
from msgspec.inspect import BoolType, Field, IntType, ListType, StructType, Type, UnionType, type_info

from highwater.pipelines.grammars.body_shapes import (
    REQUEST,
    RESPONSE,
    STRUCT_NAMES,
    Body,
    Json,
    convert_fields,
    find_loose_struct,
    list_structs,
)


class BadStruct(ValueError):
    """Raised if a text is not exactly one body of its API and version."""


#: First field of a request that is not read: metadata of clients, which can be any text.
_UNREAD: Final = {"OFFSET_COMMIT": "topics", "TXN_OFFSET_COMMIT": "topics", "JOIN_GROUP": "protocols"}
#: Responses that are read up to the error code, before clients' texts: first version with a throttle time before it.
_CODE_FIRST: Final = {"JOIN_GROUP": 2, "SYNC_GROUP": 1}
_ERROR_CODE: Final = re.compile(r"\{(throttle_time_ms=\d+,)?error_code=(-?\d+),")

_BUFFER: Final = r"java\.nio\.\w+\[[^{}\[\]]*\]"
_NO_KEY: Final = r"(?!,[A-Za-z_]\w*=)"
_TEXT: Final = rf"(?:{_NO_KEY}[^{{}}\[\]])"
#: Texts of brokers, with whatever an exception said.
_MESSAGES: Final = frozenset(("errorMessage", "batchIndexErrorMessage"))
_MESSAGE: Final = rf"(?:{_NO_KEY}[^{{}}])*"
_TOPICS: Final = frozenset(("topic", "name", "topicName"))
_TAG: Final = r"\d+=(?:[^{}\[\],]*|\{(?:[^{}]|\{[^{}]*\})*\})"
_TAGS: Final = rf"(?:,_tagged_fields=\{{(?:{_TAG}(?:, {_TAG})*)?\}})?"

#: Fields of single bodies that are printed in ways of their own, with the sign before them.
_OWN_FORMS: Final[dict[tuple[str, int], dict[str, str]]] = {
    ("PRODUCE", REQUEST): {
        "records": r",record_set=(?:java\.nio\.\w+\[pos=0 lim=(?P<recordsSizeInBytes>\d+) cap=\d+\]|"
        rf"{_BUFFER}|{_TEXT}*)",
    },
    ("FETCH", REQUEST): {"rackId": r",rack_id=(?P<rackId>[^{}\[\]=,]*)"},
    ("FETCH", RESPONSE): {
        "partition": r"(partition_header=\{)?partition=(?P<partition>\d+)",
        "abortedTransactions": r",aborted_transactions=(?P<abortedTransactions>null|\[[^\[\]]*\])",
        # Records that are neither null nor printed one by one (up to 2.3) name their class: FileRecords(size=261, ...).
        "recordSet": r"(?(1)\}),record_set=(?:\w+\((?:size=(?P<recordSetSizeInBytes>\d+), )?(?P<recordSet>[^{}]*)\)"
        r"|(?P<printed>null|\[[^\[\]{}]*\]|[\w.$]+@\w+))"
        r"(?:,_tagged_fields=\{(?:0=\{epoch=(?P<epoch>-?\d+),end_offset=(?P<endOffset>-?\d+),_tagged_fields=\{\}\})?"
        r"(?:(?:, )?1=\{leader_id=-?\d+,leader_epoch=-?\d+,_tagged_fields=\{\}\})?\})?",
    },
}
_SLICE: Final = re.compile(r"file= ?[^{}]*, start=(\d+), end=(\d+)")

_PRODUCE: Final = re.compile(
    r"\{acks=(?P<acks>-?\d+),timeout=(?P<timeoutMs>-?\d+),(?:partitionSizes=\[([^\[\]{}]*)\]|numPartitions=(\d+))\}\Z"
)
_SIZE: Final = re.compile(r"([\w.-]+)-(\d+)=(\d+)(?:,|\Z)")

#: Converts matched texts to values of a Struct.
_Change = Callable[[Json], None]


class _Piece(NamedTuple):
    """A part of a printed struct, up to the next array."""

    match: Callable[[str, int], re.Match[str] | None]  #: of its pattern
    changes: tuple[_Change, ...]  #: to the values that it has
    name: str = ""  #: of the array that begins behind it; empty behind the last piece
    elements: tuple[_Piece, ...] = ()  #: of the array


def is_read(api: str) -> bool:
    """Return True if bodies of an API are read in text."""
    return api in STRUCT_NAMES


def read_text(api: str, side: int, version: int, text: str) -> Body:
    """Parse the printed body of a listed API. Numbers stay as printed.

    Args:
        side: `REQUEST` or `RESPONSE`.

    Raises:
        BadStruct, msgspec.ValidationError: the fields are not the ones of the version.
    """
    if side == RESPONSE and api in _CODE_FIRST:
        return _read_error_code(api, version, text)
    unread = _UNREAD.get(api, "") if side == REQUEST else ""
    if unread:
        names = (_convert_name(unread), *filter(None, [STRUCT_NAMES[api][REQUEST].get(unread)]))
        if sum(text.count(f",{name}=[") for name in names) != 1 or not text.endswith("}"):
            raise BadStruct(f"{unread} not once, or without an end")
    readers = _make_readers(api, side, version)
    try:
        return _read(text, *readers[0])
    except (BadStruct, ValidationError):
        if len(readers) == 1:
            raise
        body = _read(text, *readers[1])
    readers.reverse()  # the names that were right last come first
    return body


def _read(text: str, struct: type[Struct], pieces: tuple[_Piece, ...]) -> Body:
    fields, _ = _read_level(pieces, text, 0)
    return convert(fields, struct, strict=False)


def _read_level(pieces: tuple[_Piece, ...], text: str, at: int) -> tuple[Json, int]:
    """Return (struct, end position) of the printed struct at `at`."""
    fields: Json = {}
    for match, changes, name, elements in pieces:
        matched = match(text, at)
        if matched is None:
            raise BadStruct(f"not a field of its version at {at}")
        fields |= matched.groupdict()
        for change in changes:
            change(fields)
        at = matched.end()
        if name:
            items: list[Json] = []
            fields[name] = items
            if text.startswith("]", at):
                at += 1
                continue
            while True:
                item, at = _read_level(elements, text, at)
                items.append(item)
                if text[at - 1] == "]":
                    break
    return fields, at


@lru_cache(maxsize=1_000)
def _make_readers(api: str, side: int, version: int) -> list[tuple[type[Struct], tuple[_Piece, ...]]]:
    """Return (struct type, parts of its text) for current field names, and for former names if there are any."""
    unread = _UNREAD.get(api, "") if side == REQUEST else ""
    made = []
    for struct in list_structs(api, side, version):
        info = type_info(struct)
        assert isinstance(info, StructType)
        made.append(
            (find_loose_struct(api, side) if unread else struct, _compile_struct(info, api, side, r"\Z", unread))
        )
    return made


def _compile_struct(struct: StructType, api: str, side: int, end: str, unread: str = "") -> tuple[_Piece, ...]:
    """Return the parts of a printed struct.

    Args:
        end: regular expression of what follows.
        unread: first field that is not read. Empty to read all.
    """
    own_forms = _OWN_FORMS.get((api, side), {})
    pieces: list[_Piece] = []
    pattern, changes, sign = r"\{", [], ""
    for field in struct.fields:
        name = field.encode_name
        if name == unread:
            break
        if name in own_forms:
            pattern += own_forms[name]
            changes += [_OWN_CHANGES[name]] if name in _OWN_CHANGES else []
        elif not field.required:
            continue
        else:
            keys = "|".join(filter(None, [_convert_name(name), STRUCT_NAMES[api][side].get(name)]))
            pattern += rf"{sign}(?:{keys})="
            elements = _find_elements(field.type)
            if elements is not None:
                match = re.compile(pattern + r"\[").match
                pieces.append(_Piece(match, tuple(changes), name, _compile_struct(elements, api, side, r"[,\]]")))
                pattern, changes = "", []
            else:
                value, change = _compile_value(field)
                pattern += value
                changes += [change] if change else []
        sign = ","
    if unread:
        keys = "|".join(filter(None, [_convert_name(unread), STRUCT_NAMES[api][side].get(unread)]))
        pieces.append(_Piece(re.compile(rf"{pattern},(?:{keys})=\[").match, tuple(changes)))
    else:
        tags = "" if "_tagged_fields" in pattern else _TAGS
        pieces.append(_Piece(re.compile(rf"{pattern}{tags}\}}{end}").match, tuple(changes)))
    return tuple(pieces)


def _find_elements(kind: Type) -> StructType | None:
    return kind.item_type if isinstance(kind, ListType) and isinstance(kind.item_type, StructType) else None


def _compile_value(field: Field) -> tuple[str, _Change | None]:
    """Return (regular expression of a value, function that converts it in the dict of fields, or None)."""
    name, kind = field.encode_name, field.type
    if isinstance(kind, IntType):
        return rf"(?P<{name}>-?\d+)", None
    if isinstance(kind, BoolType):
        return rf"(?P<{name}>true|false)", None
    if isinstance(kind, ListType):
        return rf"\[(?P<{name}>(?:-?\d+(?:,-?\d+)*)?)\]", lambda fields: _split(fields, name)
    if isinstance(kind, UnionType) and any(isinstance(member, BoolType) for member in kind.types):
        return rf"(?P<{name}>true|false|-?\d+)", lambda fields: _convert_flag(fields, name)
    if name in _TOPICS:  # which cannot contain separators (``Topic.validate``)
        return rf"(?P<{name}>[\w.-]+)", None
    text = _MESSAGE if name in _MESSAGES else rf"{_BUFFER}|{_TEXT}*"
    return rf"(?P<{name}>{text})", (lambda fields: _convert_null(fields, name)) if isinstance(kind, UnionType) else None


def _split(fields: Json, name: str) -> None:
    fields[name] = fields[name].split(",") if fields[name] else []


def _convert_flag(fields: Json, name: str) -> None:
    """Convert a printed boolean in `fields`. Before 1.0 it was printed as a number."""
    fields[name] = {"true": True, "false": False}.get(fields[name]) if fields[name][0] in "tf" else int(fields[name])


def _convert_null(fields: Json, name: str) -> None:
    if fields[name] == "null":
        fields[name] = None


def _fill_produced(partition: Json) -> None:
    """Set ``records`` to null in a partition without a size. Up to 0.10.1 they are a buffer or missing."""
    if partition["recordsSizeInBytes"] is None:
        del partition["recordsSizeInBytes"]
        partition["records"] = None


def _drop_transactions(fields: Json) -> None:
    fields["abortedTransactions"] = None


def _fill_fetched(partition: Json) -> None:
    """Set the size of records that do not print it: up to 2.3 from the bounds of a file's slice. 0 without records."""
    records, printed = partition.pop("recordSet"), partition.pop("printed")
    if partition["recordSetSizeInBytes"] is None:
        bounds = None if records is None else _SLICE.fullmatch(records)
        if bounds is not None:
            partition["recordSetSizeInBytes"] = int(bounds[2]) - int(bounds[1])
        elif printed == "[]":
            partition["recordSetSizeInBytes"] = 0
        else:
            del partition["recordSetSizeInBytes"]
            partition["recordSet"] = None
    epoch, end_offset = partition.pop("epoch"), partition.pop("endOffset")
    if epoch is not None:
        partition["divergingEpoch"] = {"epoch": epoch, "endOffset": end_offset}


_OWN_CHANGES: Final[dict[str, _Change]] = {
    "records": _fill_produced,
    "recordSet": _fill_fetched,
    "abortedTransactions": _drop_transactions,
}


@lru_cache(maxsize=1000)
def _convert_name(name: str) -> str:
    return re.sub(r"(?<!^)[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _read_error_code(api: str, version: int, text: str) -> Body:
    match = _ERROR_CODE.match(text)
    if match is None or (match[1] is not None) != (version >= _CODE_FIRST[api]):
        raise BadStruct("no error code")
    return convert_fields(api, RESPONSE, {"errorCode": int(match[2])})


def read_produce(version: int, text: str, response: Body | None) -> Body:
    """Parse the body of a produce request.

    At DEBUG the request prints only ``numPartitions``. Then the partitions of the response are used, without sizes.

    Args:
        response: body of the response. None without one.

    Raises:
        BadStruct, msgspec.ValidationError: the text is not exactly one body of a known version.
    """
    match = _PRODUCE.match(text)
    if match is None:  # up to 0.10.1 it prints as the struct that it is
        return read_text("PRODUCE", REQUEST, version, text)
    fields, sizes, number = match.groupdict(), match[3], match[4]
    topics: list[Json] = []
    if sizes is None:
        for topic in response.responses if response is not None else ():
            indexes = [{"index": answer.index} for answer in topic.partitionResponses]
            topics.append({"name": topic.name, "partitionData": indexes})
        if response is not None and sum(len(topic["partitionData"]) for topic in topics) != int(number):
            raise BadStruct(f"not {number} partitions were answered")
    else:
        at = 0
        while at < len(sizes):
            match = _SIZE.match(sizes, at)
            if match is None:
                raise BadStruct(f"not a partition's size: {sizes[at : at + 40]}")
            data = {"index": int(match[2]), "recordsSizeInBytes": int(match[3])}
            topics.append({"name": match[1], "partitionData": [data]})
            at = match.end()
        if sizes.endswith(","):
            raise BadStruct("a partition's size is missing")
    return convert_fields("PRODUCE", REQUEST, fields | {"topicData": topics})
