"""What containers and system logs put around each line of a log: recognised by the lines, taken off line by line.

A wrapper is no layout: what it wraps is probed for one, so that any layout may stand in any wrapper, and times are
those that Kafka wrote. The layout of a wrapped file is named after both, for example ``cri/kafka``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import orjson

from pipelines.bronze.layout import BY_NAME, FIT_SHARE, Layout, Unwrap, Unwrapped, probe
from pipelines.json_text import loads

_ISO = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)"
#: An empty line may have lost the space that ends its prefix.
_END = rb"(?: |(?=\r?\Z))"
_POD = rb"(?P<stream>\[pod/[^\]\s]{1,512}\])"
_SERVICE = rb"(?P<stream>[\w.-]{1,256}) +\|"
#: RFC 3164, rsyslog's file format, and what journalctl writes with -o short, -iso, -precise, -full, -unix, -monotonic.
_SYSLOG_TIME = (
    rb"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?"
    rb"|" + _ISO + rb"|[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})? \S{1,32}"
    rb"|\d{9,11}\.\d{3,6}|\[ *\d{1,12}\.\d{3,6}\])"
)
_SYSLOG = (
    rb"(?:<\d{1,3}>)?" + _SYSLOG_TIME + rb" (?P<stream>(?:[^\s\[\]]{0,255}[^\s\[\]:] )?[^\s:\[\]]{1,255}(?:\[\d+\])?):"
)
_STRUCTURED = rb"(?:-|(?:\[(?:[^\]\"\\]|\"(?:[^\"\\]|\\.)*\"|\\.)*\])+)"
_RFC_5424 = (
    rb"(?:\d{1,9} )?<\d{1,3}>1 (?:-|" + _ISO + rb") (?P<stream>\S{1,255} \S{1,48} \S{1,128}) \S{1,32} " + _STRUCTURED
)
_CRI = re.compile(_ISO + rb" (stdout|stderr) ([FP])(?::\S*)?" + _END)
_TABS = re.compile(rb"(?:#011)+")


@dataclass(frozen=True)
class Wrapper:
    """One named wrapper.

    Attributes:
        name: stands before the layout's in ``bronze.log_files.layout``.
        form: whose it is: documentation.
        unwrap: takes it off one line.
    """

    name: str
    form: str
    unwrap: Unwrap

    def around(self, layout: Layout) -> Layout:
        """The layout within this wrapper."""
        return replace(layout, name=f"{self.name}/{layout.name}", unwrap=self.unwrap)


def _prefixed(pattern: re.Pattern[bytes], line: bytes) -> Unwrapped | None:
    """A prefix and the line, whole: ``pattern`` names the group ``stream``, if there can be several."""
    found = pattern.match(line)
    if not found:
        return None
    return found["stream"] if pattern.groups else b"", line[found.end() :], False


def _cri(line: bytes) -> Unwrapped | None:
    """The container runtime interface's format; a long line comes in pieces with P, the last one with F."""
    found = _CRI.match(line)
    return (found[1], line[found.end() :], found[2] == b"P") if found else None


def _syslog(pattern: re.Pattern[bytes], line: bytes) -> Unwrapped | None:
    """As `_prefixed`; rsyslog writes the tabs that stack traces and settings are indented with as ``#011``."""
    unwrapped = _prefixed(pattern, line)
    if unwrapped is None or (tabs := _TABS.match(unwrapped[1])) is None:
        return unwrapped
    stream, text, goes_on = unwrapped
    return stream, b"\t" * (tabs.end() // len(b"#011")) + text[tabs.end() :], goes_on


def _docker(line: bytes) -> Unwrapped | None:
    """Docker's json-file: a line of more than 16 KiB comes in pieces, of which only the last ends with a newline."""
    fields = _fields(line)
    log = fields.get("log")
    if not isinstance(log, str):
        return None
    return _stream(fields, "stream"), log.removesuffix("\n").encode(errors="replace"), not log.endswith("\n")


def _shipped(key: str, line: bytes) -> Unwrapped | None:
    """What log shippers make of a line: an object with the line under ``key``, without its newline."""
    fields = _fields(line)
    text = fields.get(key)
    if not isinstance(text, str):
        return None
    goes_on = str(fields.get("logtag", "F")).startswith("P")
    return _stream(fields, "stream"), text.removesuffix("\n").encode(errors="replace"), goes_on


def _journal(line: bytes) -> Unwrapped | None:
    """``journalctl -o json``: text that is no UTF-8 is a list of bytes, and a line beyond LineMax= comes in pieces."""
    fields = _fields(line)
    text = fields.get("MESSAGE")
    if isinstance(text, list):
        try:
            text = bytes(text)
        except (TypeError, ValueError):
            return None
    elif isinstance(text, str):
        text = text.encode(errors="replace")
    else:
        return None
    return _stream(fields, "_STREAM_ID", "_PID"), text, fields.get("_LINE_BREAK") == "line-max"


def _fields(line: bytes) -> dict[str, Any]:
    try:
        fields = loads(line)
    except orjson.JSONDecodeError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _stream(fields: dict[str, Any], *keys: str) -> bytes:
    return next((str(fields[key]).encode(errors="replace") for key in keys if key in fields), b"")


def _text(name: str, form: str, pattern: bytes, unwrap: Any = _prefixed) -> Wrapper:
    return Wrapper(name, form, partial(unwrap, re.compile(pattern + _END)))


#: Tried in this order. One with a time stands before the same one without: Kafka's own time is never taken for it, as
#: what remains has to begin with a time, too.
WRAPPERS = (
    Wrapper("cri", "container runtime interface: 2026-11-20T15:33:21.101Z stdout F LINE", _cri),
    Wrapper("docker", 'Docker\'s json-file: {"log":"LINE\\n","stream":"stdout","time":".."}', _docker),
    Wrapper("journal-json", "journalctl -o json", _journal),
    Wrapper("json-log", 'log shippers: {"log":"LINE",..}', partial(_shipped, "log")),
    Wrapper("json-message", 'log shippers: {"message":"LINE",..}', partial(_shipped, "message")),
    _text("kubectl-prefix-timestamps", "kubectl logs --prefix --timestamps", _POD + rb" " + _ISO),
    _text("kubectl-prefix", "kubectl logs --prefix", _POD),
    _text("compose-timestamps", "docker compose logs --timestamps", _SERVICE + rb" " + _ISO),
    _text("compose", "docker compose logs", _SERVICE),
    _text("timestamps", "kubectl logs --timestamps, docker logs --timestamps", _ISO),
    _text("syslog-5424", "RFC 5424", _RFC_5424, _syslog),
    _text("syslog", "RFC 3164, rsyslog's files, journalctl -o short and its variants", _SYSLOG, _syslog),
)
_WRAPPER_BY_NAME = {wrapper.name: wrapper for wrapper in WRAPPERS}


def recognise(lines: Sequence[bytes]) -> Layout | None:
    """The layout of the lines that a file begins with, in its wrapper if it has one; None if no known one.

    Args:
        lines: without line ends.
    """
    written = [line for line in lines if line.strip()]
    for wrapper in WRAPPERS:
        unwrapped = [inner for line in written if (inner := wrapper.unwrap(line)) is not None]
        if not unwrapped or len(unwrapped) < FIT_SHARE * len(written):
            continue
        if layout := probe(list(_joined(unwrapped))):
            return wrapper.around(layout)
    return probe(lines)


def layout_named(name: str) -> Layout:
    """The layout that `recognise` gave this name."""
    wrapper, _, layout = name.rpartition("/")
    return _WRAPPER_BY_NAME[wrapper].around(BY_NAME[layout]) if wrapper else BY_NAME[layout]


def _joined(lines: Sequence[Unwrapped]) -> Iterator[bytes]:
    """Whole lines; a last piece that goes on is left out."""
    pieces: dict[bytes, list[bytes]] = {}
    for stream, text, goes_on in lines:
        pieces.setdefault(stream, []).append(text)
        if not goes_on:
            yield b"".join(pieces.pop(stream)).removesuffix(b"\r")
