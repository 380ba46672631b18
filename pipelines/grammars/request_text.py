"""The text form of the request log, Kafka 0.8.2 to 2.7: a line as the JSON form of later versions would have it.

    Completed request:<header> -- <body>[,response:<body>] from connection <id>;totalTime:5.1,...,listener:PLAINTEXT

The header is a struct with the API's number up to 0.11, ``RequestHeader(apiKey=FETCH, ...)`` from 1.0 on, which also
prints the response; before 0.11 some or all requests are described by their own class (`legacy_text`). A response that
was never sent (acks=0) is empty.

Client ids, group ids and the like are printed without quotes. So a line is split at unique marks, and rejected if a
mark occurs twice.

Source: ``RequestChannel.Request.updateRequestMetrics``, ``RequestHeader.toString``, ``Struct.toString``.
"""

from __future__ import annotations

import re
from typing import Final

from highwater.pipelines.grammars.body_shapes import REQUEST, RESPONSE, Json
from highwater.pipelines.grammars.legacy_text import read_described
from highwater.pipelines.grammars.request_line import API_NAMES, TIME_FIELDS, Header, RequestLine
from highwater.pipelines.grammars.text_bodies import BadStruct, is_read, read_produce, read_text

_KNOWN_NAMES: Final = frozenset(API_NAMES)
#: Later names of APIs, by their former names.
_FORMER_NAMES: Final = {"ELECT_PREFERRED_LEADERS": "ELECT_LEADERS"}

_CLASS_HEADER: Final = re.compile(
    r"RequestHeader\(apiKey=(\w+), apiVersion=(\d+), clientId=(.*?), correlationId=(-?\d+)\) -- ", re.DOTALL
)
_STRUCT_HEADER: Final = re.compile(
    r"\{api_key=(\d+),api_version=(\d+),correlation_id=(-?\d+),client_id=(.*?)\} -- ", re.DOTALL
)
_RESPONSE: Final = "},response:"

#: Java prints doubles; 0.11 formats them with the separator of the broker's locale.
_MS: Final = r"(\d+(?:[.,]\d+)?(?:E-?\d+)?)"
_FRACTION: Final = re.compile(r"[.,]").search
#: A principal. Its commas separate the parts of a distinguished name.
_PRINCIPAL: Final = r"((?:(?!listener:)[^,\\]|\\.|,(?=\s?[\w.]+=))*)"
_TIMES: Final = re.compile(
    rf" from (connection|client) ([^;]+);totalTime:{_MS},requestQueueTime:{_MS},localTime:{_MS},remoteTime:{_MS}"
    rf"(?:,throttleTime:{_MS})?,responseQueueTime:{_MS},sendTime:{_MS}"
    rf"(?:,securityProtocol:\w+,principal:{_PRINCIPAL}(?:,listener:([^,:]+))?"
    r"(?:,clientInformation:ClientInformation\(softwareName=[^(),]*, softwareVersion=[^(),]*\))?"
    rf"(?:,temporaryMemoryBytes:\d+)?(?:,messageConversionsTime:{_MS})?)?\Z",
    re.DOTALL,
)


class UnreadableText(ValueError):
    """A completion line that is not text of a known version.

    Attributes:
        reason: ``bad_header``, ``bad_times``, ``bad_struct`` or ``unknown_api``.
    """

    def __init__(self, reason: str, problem: str) -> None:
        super().__init__(problem)
        self.reason = reason


def read_completed(text: str) -> tuple[RequestLine, str]:
    """Return (parsed line, bodies as printed). The bodies are empty for PRODUCE and FETCH, which are parsed completely.

    Args:
        text: the line after ``Completed request:``.

    Raises:
        UnreadableText: the line is truncated, or its parts are ambiguous.
    """
    times, end = _parse_times(text)
    try:
        if text.startswith("Name:"):
            header, request = read_described(text[:end])
            return RequestLine(request_header=header, request=request, response=None, **times), text[:end]
        header, begin, answers = _parse_header(text)
        if times["principal"] is None or (answers and times["listener"] is None):
            raise UnreadableText("bad_times", "no principal or no listener")
        asked, answered = _split_bodies(text[begin:end], answers)
        api, version = header.request_api_key_name, header.request_api_version
        printed = "" if api in ("FETCH", "PRODUCE") else text[begin:end]
        request = response = None
        if is_read(api):
            response = read_text(api, RESPONSE, version, answered) if answered else None
            is_produce = api == "PRODUCE"
            request = read_produce(version, asked, response) if is_produce else read_text(api, REQUEST, version, asked)
    except BadStruct as problem:
        raise UnreadableText("bad_struct", str(problem)) from None
    return RequestLine(request_header=header, request=request, response=response, **times), printed


def _parse_header(text: str) -> tuple[Header, int, bool]:
    """Return (header, position of the body, True if the line has a response)."""
    match = _CLASS_HEADER.match(text)
    if match is not None:
        api, version, client_id, correlation_id = match.groups()
        api = _FORMER_NAMES.get(api, api)
        if api not in _KNOWN_NAMES:
            raise UnreadableText("unknown_api", api)
        mark = ") -- {"
    else:
        match = _STRUCT_HEADER.match(text)
        if match is None:
            raise UnreadableText("bad_header", text[:80])
        number, version, correlation_id, client_id = match.groups()
        if int(number) >= len(API_NAMES):
            raise UnreadableText("unknown_api", number)
        api = API_NAMES[int(number)]
        mark = "} -- {"
    begin = match.end()
    if text.find(mark, begin) >= 0:
        raise UnreadableText("bad_header", "a client id that cannot be told from what follows")
    header = Header(
        request_api_key=API_NAMES.index(api),
        request_api_version=int(version),
        correlation_id=int(correlation_id),
        client_id=None if client_id == "null" else client_id,
        request_api_key_name=api,
    )
    return header, begin, mark.startswith(")")


def _split_bodies(printed: str, answers: bool) -> tuple[str, str | None]:
    """Return (request, response) as printed. The response is None if the line has none."""
    if not answers:
        return printed, None
    request, mark, response = printed.partition(_RESPONSE)
    if not mark or _RESPONSE in response:
        raise BadStruct("request and response cannot be told apart")
    return request + "}", response or None


def _parse_times(text: str) -> tuple[Json, int]:
    """Return (values at the end of a line, position where they begin)."""
    at = text.rfind(" from connection ")
    if at < 0:
        at = text.rfind(" from client ")
    match = _TIMES.match(text, at) if at >= 0 else None
    if match is None:
        raise UnreadableText("bad_times", text[-80:])
    peer, connection, *printed, principal, listener, _ = match.groups()
    if "," in printed[0]:
        printed = [number and number.replace(",", ".") for number in printed]
    total, queue, local, remote = float(printed[0]), float(printed[1]), float(printed[2]), float(printed[3])
    response_queue, send = float(printed[5]), float(printed[6])
    if printed[4] is not None:
        throttle = float(printed[4])
    elif any(map(_FRACTION, filter(None, printed))):
        raise UnreadableText("bad_times", "no throttleTime")
    else:
        # Up to 0.10.2, whose times are whole milliseconds, it is what the others leave. In 0.8.2, which had no quotas,
        # that is nothing: cut short.
        throttle = max(0.0, total - queue - local - remote - response_queue - send)
    if (principal is None) != (peer == "client") or (peer == "client" and throttle > 0):
        raise UnreadableText("bad_times", text[-80:])
    times = (total, queue, local, remote, throttle, response_queue, send)
    return {
        "connection": connection,
        "listener": listener,
        "principal": principal,
        **dict(zip(TIME_FIELDS, times, strict=True)),
    }, at
