"""A completed request of a line, in either form, and the reader of the JSON form.

Source: ``RequestConvertToJson`` (KIP-673, KAFKA-10525).
"""

from __future__ import annotations

import json
from typing import Any, Final, cast

from msgspec import Raw, Struct
from msgspec.json import Decoder, Encoder

from highwater.pipelines.grammars.body_shapes import READ_APIS, REQUEST, RESPONSE, Body, Integer, read_body
from highwater.schemas.package_data import read_toml

_APIS: Final = read_toml(__package__, "apis.toml")
#: Names of APIs, by number.
API_NAMES: Final[tuple[str, ...]] = tuple(_APIS["names"].split())
#: Numbers of APIs that `API_NAMES` lacks, of the APIs that are read.
_LATER_NUMBERS: Final[dict[str, int]] = _APIS["later_numbers"]
#: Times of a line, in milliseconds: fields of `RequestLine`, and columns.
TIME_FIELDS: Final = (
    *("total_time_ms", "request_queue_time_ms", "local_time_ms", "remote_time_ms", "throttle_time_ms"),
    *("response_queue_time_ms", "send_time_ms"),
)
#: What is printed where no response was sent (acks=0).
_NO_RESPONSE: Final = (b'""', b"null", b"{}")


class _Named(Struct, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Base of Structs with the names of JSON."""


class Header(_Named, kw_only=True, gc=False):
    """Header of a request."""

    request_api_key: Integer
    request_api_version: Integer
    correlation_id: Integer
    client_id: str | None
    request_api_key_name: str
    #: KAFKA-18272.
    request_api_version_deprecated: bool | None = None


class RequestLine(_Named, kw_only=True):
    """A line about a completed request. Times are in ms."""

    request_header: Header
    request: Body  #: its body, of the shape that its API and version have (`pipelines.grammars.body_shapes`)
    response: Body | None  #: likewise; None where the log has none
    connection: str
    listener: str | None
    principal: str | None
    total_time_ms: float
    request_queue_time_ms: float
    local_time_ms: float
    remote_time_ms: float
    throttle_time_ms: float
    response_queue_time_ms: float
    send_time_ms: float
    is_forwarded: bool | None = None


class _Printed(RequestLine, kw_only=True):
    """The same line in JSON form, with undecoded bodies and fields that are dropped."""

    request: Raw
    response: Raw
    security_protocol: str
    client_information: dict[str, str] | None = None
    temporary_memory_bytes: int | None = None
    message_conversions_time: float | None = None


_DECODER: Final = Decoder(_Printed)
_ENCODER: Final = Encoder()


def read_json(text: str) -> tuple[RequestLine, str]:
    """Return (parsed line, bodies as printed). The bodies are empty for PRODUCE and FETCH, which are parsed completely.

    Args:
        text: JSON after ``Completed request:``.

    Raises:
        ValueError, also as msgspec.DecodeError: the version does not print this.
    """
    line: RequestLine = _DECODER.decode(text)
    header = line.request_header
    request, response = cast(Raw, line.request), cast(Raw, line.response)
    api, version = header.request_api_key_name, header.request_api_version
    if not _is_name(api, header.request_api_key):
        raise ValueError(f"{api} is not the name of API {header.request_api_key}")
    is_answered = bytes(response) not in _NO_RESPONSE
    if api in READ_APIS:
        line.request = read_body(api, REQUEST, version, request)
        if is_answered:
            line.response = read_body(api, RESPONSE, version, response)
    _require_once_each(text, line)
    if not is_answered:
        line.response = None
    if api in ("PRODUCE", "FETCH"):
        return line, ""
    return line, f'{{"request":{str(request, "utf-8")},"response":{str(response, "utf-8") if is_answered else "{}"}}}'


def _is_name(api: str, number: int) -> bool:
    """Return True if the API has this number. An API that is not read may have any unused number."""
    if api in _LATER_NUMBERS:
        return _LATER_NUMBERS[api] == number
    return api == API_NAMES[number] if 0 <= number < len(API_NAMES) else api not in READ_APIS


def _require_once_each(text: str, line: RequestLine) -> None:
    """Raise a ValueError if an object has a key twice: the decoder keeps only the last one.

    Unless a key was dropped, the re-encoded line has as many colons as the line itself. Lines with escapes are parsed
    again.
    """
    if text.count(":") != _ENCODER.encode(line).count(b":") or "\\" in text:
        json.loads(text, object_pairs_hook=_require_unique)


def _require_unique(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key twice")
