"""Bodies of requests and responses as Structs, one per API and version. Only declared bodies are read.

An undeclared name may be a field that a reader expects under its old name, and a missing name would make a value that
the line does not have. So a body must have exactly the fields of its version, with values of their types; a release
that adds a field is an entry of ``body_shapes.toml``. Only APIs whose bodies become columns or partitions are listed.

A struct is written as its fields, ``name:versions=type``. Versions are as in message definitions; the default is all.
The default type is integer. ``[...]`` is an array of structs, ``{...}`` one struct. ``name?`` is a tagged field,
printed only with another value than its default; ``name*`` may be null; ``a|b`` is one field, ``a`` here, that former
releases called ``b``: a body has all its former names, or none.

Source: the message definitions of Kafka's clients, 2.8 to 4.3 (``clients/src/main/resources/common/message``), and
``RequestConvertToJson``, which prints the size of records in their place. `text_bodies` converts struct bodies before
2.8 to these names.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, ValidationError, convert, defstruct
from msgspec.json import Decoder

from highwater.schemas.package_data import read_toml

Json = dict[str, Any]
#: A request or a response: a Struct whose fields have the names of the JSON form.
Body = Any

_PART: Final = re.compile(r"\$([A-Z_]+)")
_SHAPES: Final = read_toml(__package__, "body_shapes.toml")


def _expand_parts(text: str) -> str:
    """Return a body declaration with its named parts expanded, on one line."""
    while _PART.search(text):
        text = _PART.sub(lambda part: _SHAPES["parts"][part[1]], text)
    return " ".join(text.split())


#: Request and response by API.
_BODIES: Final[dict[str, tuple[str, str]]] = {
    api: (_expand_parts(body["request"]), _expand_parts(body["response"])) for api, body in _SHAPES["bodies"].items()
}
#: Names of fields before 2.4, by their names of the JSON form, in request and response; several are separated by ``|``.
STRUCT_NAMES: Final[dict[str, tuple[dict[str, str], dict[str, str]]]] = {
    api: (names["request"], names["response"]) for api, names in _SHAPES["struct_names"].items()
}
#: APIs whose bodies are read.
READ_APIS: Final = frozenset(_BODIES)
REQUEST, RESPONSE = 0, 1

_FIELD: Final = re.compile(r"([\w|]+)([?*]?)(?::(\d+)(?:-(\d+)|(\+))?)?(?:=(\w+))?([\[{])?")
#: Kafka's integers have 64 bits at most.
Integer = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_TYPES: Final[dict[str | None, Any]] = {
    None: Integer,
    "text": str,
    "flag": bool,
    "bit": bool | Integer,  # in text before 1.0 a number
    "numbers": list[Integer],
    "texts": list[str],
    "nothing": None | UnsetType,
    "anything": Any,
}


def read_body(api: str, side: int, version: int, body: Raw) -> Body:
    """Decode the JSON body of a listed API and version. Fields that only other versions have are None.

    Args:
        side: `REQUEST` or `RESPONSE`.

    Raises:
        msgspec.DecodeError: the fields are not the ones of the version.
    """
    decoders = _make_decoders(api, side, version)
    try:
        return decoders[0].decode(body)
    except ValidationError:
        return _read_other_spelling(decoders, body)


def convert_fields(api: str, side: int, fields: Json) -> Body:
    """Return a body from fields that were parsed from text, with numbers as printed. Missing fields are None."""
    return convert(fields, find_loose_struct(api, side), strict=False)


def list_structs(api: str, side: int, version: int) -> list[type[Struct]]:
    """Return the Structs of a version's body: with current field names, and with former ones if there are any."""
    return [decoder.type for decoder in _make_decoders(api, side, version)]


def _read_other_spelling(decoders: list[Decoder[Any]], body: Raw) -> Any:
    """Decode a body with the other field names (current or former). The decoder that matches is tried first afterwards.

    Raises:
        msgspec.DecodeError: no decoder matches.
    """
    with suppress(ValidationError):
        read = decoders[-1].decode(body)
        decoders.reverse()
        return read
    return decoders[0].decode(body)


@lru_cache(maxsize=1_000)
def _make_decoders(api: str, side: int, version: int) -> list[Decoder[Any]]:
    """Return a decoder for current field names, and one for former names if there are any."""
    text = _BODIES[api][side]
    return [Decoder(_parse_struct(text, 0, version, spelling)[0]) for spelling in range(2 if "|" in text else 1)]


@lru_cache(maxsize=100)
def find_loose_struct(api: str, side: int) -> type[Struct]:
    """Return a Struct with the fields of all versions, all optional."""
    return _parse_struct(_BODIES[api][side], 0, None, 0)[0]


def _parse_struct(text: str, at: int, version: int | None, spelling: int) -> tuple[type[Struct], int]:
    """Return (struct, end position) of a body declaration. It ends at the end of the text or at a bracket.

    Args:
        at: where it begins.
        version: None for a struct with the fields of all versions, all optional.
        spelling: 0 for current field names, 1 for former names.
    """
    fields: list[Any] = []
    names: dict[str, str] = {}
    namespace: dict[str, Any] = {}
    while at < len(text) and text[at] not in "]}":
        match = _FIELD.match(text, at)
        if match is None:
            raise AssertionError(f"a shape that cannot be read: {text[at : at + 40]}")
        alternatives, mark, first, last, onwards, type_name, bracket = match.groups()
        at = match.end()
        name, *former = alternatives.split("|")
        value: Any = _TYPES[type_name]
        if bracket:
            value, at = _parse_struct(text, at, version, spelling)
            value = list[value] if bracket == "[" else value
            at += 1
        at += text.startswith(" ", at)
        lowest = int(first or 0)
        highest = int(last) if last else lowest if first and not onwards else None
        if version is None:
            fields.append((name, value | None, None))
        elif lowest <= version and (highest is None or version <= highest):
            value = value | None if mark == "*" else value
            default = [UNSET if type_name == "nothing" else None] if mark == "?" else []
            fields.append((name, value, *default))
            names[name] = former[0] if former and spelling else name
            if type_name == "nothing":
                namespace["__post_init__"] = _require_records
        else:
            namespace[name] = None
    struct = defstruct(
        "Body",
        fields,
        namespace=namespace,
        rename=names,
        kw_only=True,
        omit_defaults=True,
        forbid_unknown_fields=version is not None,
        gc=False,
    )
    return struct, at


def _require_records(body: Any) -> None:
    """Raise ValueError unless a partition has either the size of its records or an explicit null."""
    if (body.recordsSizeInBytes is None) == (body.records is UNSET):
        raise ValueError("not one field recordsSizeInBytes")
