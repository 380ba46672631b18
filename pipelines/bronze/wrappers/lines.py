"""Wrappers of a line of text: each names the forms that it takes off, and what they say of the line's stream."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Any

from msgspec import Struct, toml

from pipelines.bronze.layout import Unwrap, Unwrapped
from pipelines.bronze.layouts.structured import parsed

#: Of lines that a terminal broke, before the width in brackets.
COLUMNS = "columns"
#: Behind the source of a stream (a pod, a service, a host and its program) stands what tells streams of it apart.
OF_SOURCE = b"\0"
#: An empty line may have lost the space that ends its prefix.
_END = r"(?: |(?=\r?\Z))"


class _File(Struct, forbid_unknown_fields=True):
    """``wrappers.toml``; what its tables hold is said at its head."""

    parts: dict[str, str]
    wrappers: dict[str, tuple[str, str, str]]


_FILE = toml.decode(files(__package__).joinpath("wrappers.toml").read_bytes(), type=_File)


def _compiled(pattern: str) -> re.Pattern[bytes]:
    """A pattern of a prefix, with the parts that it names and its end."""
    while named := next((name for name in _FILE.parts if f"{{{name}}}" in pattern), None):
        pattern = pattern.replace(f"{{{named}}}", _FILE.parts[named])
    return re.compile((pattern + _END).encode())


_CRI = _compiled(r"{ISO} (stdout|stderr) ([FP])(?::\S*)?")
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
    prefix = pattern.match(line)
    if not prefix:
        return None
    groups = pattern.groupindex
    source = prefix["source"] if "source" in groups else b""
    return stream(source or b"", prefix["rest"] if "rest" in groups else b""), line[prefix.end() :], False


def _cri(line: bytes) -> Unwrapped | None:
    """The container runtime interface's format; a long line comes in pieces with P, the last one with F."""
    entry = _CRI.match(line)
    return (stream(b"", entry[1]), line[entry.end() :], entry[2] == b"P") if entry else None


def _syslog(pattern: re.Pattern[bytes], line: bytes) -> Unwrapped | None:
    """As `_prefixed`; rsyslog writes the tabs that stack traces and settings are indented with as ``#011``."""
    unwrapped = _prefixed(pattern, line)
    if unwrapped is None or (tabs := _TABS.match(unwrapped[1])) is None:
        return unwrapped
    name, text, goes_on = unwrapped
    return name, b"\t" * (tabs.end() // len(b"#011")) + text[tabs.end() :], goes_on


def _labelled(pattern: re.Pattern[bytes], line: bytes) -> Unwrapped | None:
    """Loki's command writes the labels of a stream before its lines."""
    entry = pattern.match(line)
    if entry is None:
        return None
    label = _LABEL.search(entry["labels"])
    return label[1] if label else b"", line[entry.end() :], False


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


COLOURS = Wrapper("colours", "colours of a terminal: `ESC[36m`, also as `^[[36m` or `#033[36m`", _colours)
_WAYS: dict[str, Callable[[re.Pattern[bytes], bytes], Unwrapped | None]] = {
    "prefix": _prefixed,
    "syslog": _syslog,
    "labels": _labelled,
}
#: Tried in this order; of equally good ones the first wins.
WRAPPERS = (
    Wrapper(
        "cri", "containerd and CRI-O: `2026-11-20T15:33:21.101Z stdout F LINE`; pieces marked `P` are joined", _cri
    ),
    Wrapper("docker", 'Docker\'s json-file: `{"log":"LINE\\n","stream":"stdout",..}`; pieces are joined', _docker),
    Wrapper("journal-json", "`journalctl -o json`; pieces of a long line are joined", _journal),
    *(
        Wrapper(name, form, partial(_WAYS[way], _compiled(pattern)))
        for name, (form, way, pattern) in _FILE.wrappers.items()
    ),
    Wrapper(
        "indented",
        "four spaces or a tab before each line, as pasted text has",
        partial(_prefixed, re.compile(rb" {4}|\t")),
    ),
)
