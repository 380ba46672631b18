"""Wrappers of a line of text: each names the forms that it takes off, and what they say of the line's stream."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipelines.bronze.layout import Unwrap, Unwrapped
from pipelines.bronze.layouts.structured import parsed

#: Of lines that a terminal broke, before the width in brackets.
COLUMNS = "columns"
#: Behind the source of a stream (a pod, a service, a host and its program) stands what tells streams of it apart.
OF_SOURCE = b"\0"
_ISO = rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)"
#: An empty line may have lost the space that ends its prefix.
_END = rb"(?: |(?=\r?\Z))"
_POD = rb"\[pod/(?P<source>[^\]\s]{1,512})\]"
_SERVICE = rb"(?P<source>[\w.@-]{1,256}) *\|"
_CLOCK = rb"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
#: RFC 3164 with any locale's months, rsyslog's file format, and what journalctl writes with -o short, -iso, -precise,
#: -full, -unix, -monotonic.
_SYSLOG_TIME = (
    rb"(?:(?:[A-Za-z\x80-\xff]{2,12}\.? {1,2}\d{1,2}\.?|\d{1,2}\.? [A-Za-z\x80-\xff]{2,12}\.?"
    rb"|\d{1,2}[\x80-\xff]{3} {1,2}\d{1,2}) "
    + _CLOCK
    + rb"|"
    + _ISO
    + rb"|[A-Za-z\x80-\xff]{2,6}\.? \d{4}-\d\d-\d\d "
    + _CLOCK
    + rb" \S{1,32}|\d{9,11}\.\d{3,6}|\[ *\d{1,12}\.\d{3,6}\])"
)
_SYSLOG = (
    rb"(?:<\d{1,3}>)?"
    + _SYSLOG_TIME
    + rb" (?P<source>(?:[^\s\[\]]{0,255}[^\s\[\]:] )?[^\s:\[\]]{1,255})(?P<rest>(?:\[\d+\])?):"
)
_STRUCTURED = rb"(?:-|(?:\[(?:[^\]\"\\]|\"(?:[^\"\\]|\\.)*\"|\\.)*\])+)"
_RFC_5424 = (
    rb"(?:\d{1,9} )?<\d{1,3}>1 (?:-|"
    + _ISO
    + rb") (?P<source>\S{1,255} \S{1,48}) (?P<rest>\S{1,128}) \S{1,32} "
    + _STRUCTURED
)
_CRI = re.compile(_ISO + rb" (stdout|stderr) ([FP])(?::\S*)?" + _END)
_TABS = re.compile(rb"(?:#011)+")
_COLOURS = re.compile(rb"(?:\x1b|\^\[|#033|\\x1b|\\033|\\u001[bB])\[[0-9;?]*[A-Za-z]|\x1b\(B")
_LABEL = re.compile(rb'\b(?:pod|pod_name|instance|container|container_name|host|hostname|node)="([^"]*)"')


@dataclass(frozen=True)
class Wrapper:
    """One named wrapper."""

    name: str  #: stands before the layout's in ``bronze.log_files.layout``
    form: str  #: whose it is: documentation
    unwrap: Unwrap  #: takes it off one line
    pieces: str = ""  #: how a file falls into what is unwrapped (`pipelines.bronze.wrappers.pieces`); empty: into lines


def stream(source: bytes, rest: bytes = b"") -> bytes:
    """The name of a stream."""
    return source + OF_SOURCE + rest if rest else source


def source_of(name: bytes) -> bytes:
    """Who wrote a stream, as far as its wrapper tells."""
    return name.partition(OF_SOURCE)[0]


def _prefixed(pattern: re.Pattern[bytes], line: bytes) -> Unwrapped | None:
    """A prefix and the line, whole: ``pattern`` names the groups ``source`` and ``rest``, if there can be several."""
    found = pattern.match(line)
    if not found:
        return None
    groups = pattern.groupindex
    source = found["source"] if "source" in groups else b""
    return stream(source or b"", found["rest"] if "rest" in groups else b""), line[found.end() :], False


def _cri(line: bytes) -> Unwrapped | None:
    """The container runtime interface's format; a long line comes in pieces with P, the last one with F."""
    found = _CRI.match(line)
    return (stream(b"", found[1]), line[found.end() :], found[2] == b"P") if found else None


def _syslog(pattern: re.Pattern[bytes], line: bytes) -> Unwrapped | None:
    """As `_prefixed`; rsyslog writes the tabs that stack traces and settings are indented with as ``#011``."""
    unwrapped = _prefixed(pattern, line)
    if unwrapped is None or (tabs := _TABS.match(unwrapped[1])) is None:
        return unwrapped
    name, text, goes_on = unwrapped
    return name, b"\t" * (tabs.end() // len(b"#011")) + text[tabs.end() :], goes_on


def _labelled(pattern: re.Pattern[bytes], line: bytes) -> Unwrapped | None:
    """Loki's command writes the labels of a stream before its lines."""
    found = pattern.match(line)
    if found is None:
        return None
    label = _LABEL.search(found["labels"])
    return label[1] if label else b"", line[found.end() :], False


def _docker(line: bytes) -> Unwrapped | None:
    """Docker's json-file: a line of more than 16 KiB comes in pieces, of which only the last ends with a newline."""
    fields = parsed(line)
    log = fields.get("log")
    if not isinstance(log, str):
        return None
    return _rest(fields, "stream"), log.removesuffix("\n").encode(errors="replace"), not log.endswith("\n")


def _journal(line: bytes) -> Unwrapped | None:
    """``journalctl -o json``: text that is no UTF-8 is a list of bytes, and a line beyond LineMax= comes in pieces."""
    fields = parsed(line)
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
    host, program = (str(fields.get(key, "")) for key in ("_HOSTNAME", "SYSLOG_IDENTIFIER"))
    source = f"{host} {program}".strip().encode(errors="replace")
    return source + _rest(fields, "_STREAM_ID", "_PID"), text, fields.get("_LINE_BREAK") == "line-max"


def _rest(fields: dict[str, Any], *keys: str) -> bytes:
    return next((OF_SOURCE + str(fields[key]).encode(errors="replace") for key in keys if key in fields), b"")


def _colours(line: bytes) -> Unwrapped | None:
    """Colours stand anywhere in a line; who copies or ships it may write the escape sign in other ways."""
    return b"", _COLOURS.sub(b"", line), False


def columns(width: int) -> Wrapper:
    """Lines that a terminal broke where its width ends: whole ones go on in the next line."""

    def unwrap(line: bytes) -> Unwrapped | None:
        return b"", line, len(line.decode(errors="replace")) == width

    return Wrapper(f"{COLUMNS}({width})", "", unwrap)


def has_colours(line: bytes) -> bool:
    """Whether there are any."""
    return _COLOURS.search(line) is not None


def _text(
    name: str, form: str, pattern: bytes, unwrap: Callable[[Any, bytes], Unwrapped | None] = _prefixed
) -> Wrapper:
    return Wrapper(name, form, partial(unwrap, re.compile(pattern + _END)))


COLOURS = Wrapper("colours", "colours of a terminal: `ESC[36m`, also as `^[[36m` or `#033[36m`", _colours)
#: Tried in this order; of equally good ones the first wins.
WRAPPERS = (
    Wrapper(
        "cri", "containerd and CRI-O: `2026-11-20T15:33:21.101Z stdout F LINE`; pieces marked `P` are joined", _cri
    ),
    Wrapper("docker", 'Docker\'s json-file: `{"log":"LINE\\n","stream":"stdout",..}`; pieces are joined', _docker),
    Wrapper("journal-json", "`journalctl -o json`; pieces of a long line are joined", _journal),
    _text("kubectl-prefix", "`kubectl logs --prefix`: `[pod/kafka-0/kafka] LINE`", _POD),
    _text(
        "compose",
        "`docker compose logs` and `up`: `kafka-1  | LINE`; swarm's `service.slot.task@node    | LINE`",
        _SERVICE,
    ),
    _text("gitlab", "GitLab's job logs: `2026-11-20T15:33:21.101234Z 01O LINE`", _ISO + rb" \d\d[OE]\+?"),
    _text(
        "logcli",
        '`logcli query`: `2026-11-20T15:33:21Z {pod="kafka-0"} LINE`',
        _ISO + rb" (?P<labels>\{[^}\n]*\})",
        _labelled,
    ),
    _text("syslog-5424", "RFC 5424", _RFC_5424, _syslog),
    _text(
        "syslog",
        "RFC 3164 with the months of any locale, rsyslog's files, `journalctl` (`-o short` and its variants)",
        _SYSLOG,
        _syslog,
    ),
    _text(
        "timestamps",
        "`kubectl logs --timestamps`, `docker logs --timestamps`, GitHub Actions, `aws logs tail`: an ISO time with Z "
        "or an offset",
        _ISO,
    ),
    _text("docker-desktop", "Docker Desktop's view: `2026-11-20 15:33:21 LINE`", rb"\d{4}-\d\d-\d\d[ T]" + _CLOCK),
    _text(
        "github-run",
        "`gh run view --log`: the job, the step and a time, between tabs",
        rb"[^\t\n]{1,200}\t[^\t\n]{1,200}\t\xef?\xbb?\xbf?" + _ISO,
    ),
    _text("kubetail", "`[pod container] LINE`", rb"\[(?P<source>[a-z0-9][a-z0-9.-]+(?: [a-z0-9][a-z0-9-]*)?)\]"),
    _text(
        "stern",
        "stern, `pod container LINE`, and a stream's name that `aws logs tail` puts there",
        rb"(?P<source>[A-Za-z0-9][\w./-]*[0-9/.-][\w./-]*(?: [a-z][a-z0-9-]*)?)",
    ),
    _text("quoted", "`> LINE`, as mail quotes", rb"(?:> ?)*>"),
    Wrapper(
        "indented",
        "four spaces or a tab before each line, as pasted text has",
        partial(_prefixed, re.compile(rb" {4}|\t")),
    ),
)
