"""Wraps the lines of a log as containers, system logs and shippers do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

#: A logged line without its line end, in the pieces that it is written in.
Pieces = list[bytes]
ISO = "2026-11-20T15:33:21.101234567Z"


def _text(text: bytes) -> str:
    return text.decode(errors="replace")


def cri(pieces: Pieces) -> Iterator[bytes]:
    for piece in pieces[:-1]:
        yield f"{ISO} stdout P ".encode() + piece
    yield f"{ISO} stdout F ".encode() + pieces[-1]


def docker(pieces: Pieces) -> Iterator[bytes]:
    for number, piece in enumerate(pieces):
        end = "\n" if number == len(pieces) - 1 else ""
        yield json.dumps({"log": _text(piece) + end, "stream": "stdout", "time": ISO}).encode()


def shipped(pieces: Pieces) -> Iterator[bytes]:
    for number, piece in enumerate(pieces):
        tag = "F" if number == len(pieces) - 1 else "P"
        yield json.dumps({"time": ISO, "stream": "stdout", "logtag": tag, "log": _text(piece)}).encode()


def journal(pieces: Pieces) -> Iterator[bytes]:
    for number, piece in enumerate(pieces):
        fields = {"_STREAM_ID": "7a1", "_PID": "812", "SYSLOG_IDENTIFIER": "kafka-server-start.sh"}
        if number < len(pieces) - 1:
            fields["_LINE_BREAK"] = "line-max"
        plain = all(byte >= 32 or byte == 9 for byte in piece)
        yield json.dumps(fields | {"MESSAGE": _text(piece) if plain else list(piece)}).encode()


def _prefix(prefix: str, encode: Callable[[bytes], bytes] = bytes) -> Callable[[Pieces], Iterator[bytes]]:
    def wrap(pieces: Pieces) -> Iterator[bytes]:
        yield prefix.encode() + encode(b"".join(pieces))

    return wrap


def _rsyslog(text: bytes) -> bytes:
    bare = text.lstrip(b"\t")
    return b"#011" * (len(text) - len(bare)) + bare


#: Wrappers by name; those with a prefix only never split a line.
WRAPPINGS: dict[str, Callable[[Pieces], Iterable[bytes]]] = {
    "cri": cri,
    "docker": docker,
    "json-log": shipped,
    "json-message": lambda pieces: [json.dumps({"@timestamp": ISO, "message": _text(b"".join(pieces))}).encode()],
    "journal-json": journal,
    "kubectl-prefix-timestamps": _prefix(f"[pod/kafka-0/kafka] {ISO} "),
    "kubectl-prefix": _prefix("[pod/kafka-0/kafka] "),
    "timestamps": _prefix(f"{ISO} "),
    "compose": _prefix("kafka-1  | "),
    "compose-timestamps": _prefix(f"kafka-1  | {ISO} "),
    "syslog-5424": _prefix('<134>1 2026-11-20T15:33:21.101Z host kafka 812 - [origin ip="10.0.0.1" x="]"] '),
    "syslog-5424-bare": _prefix("<134>1 2026-11-20T15:33:21.101Z host kafka - - - ", _rsyslog),
    "syslog-3164": _prefix("<134>Nov 20 15:33:21 host kafka[812]: ", _rsyslog),
    "rsyslog-file": _prefix("2026-11-20T15:33:21.101234+00:00 host kafka-server-start.sh[812]: ", _rsyslog),
    "journal-short": _prefix("Nov 20 15:33:21 host kafka-server-start.sh[812]: "),
    "journal-no-hostname": _prefix("Nov 20 15:33:21 kafka[812]: "),
    "journal-short-iso": _prefix("2026-11-20T15:33:21+0000 host kafka[812]: "),
    "journal-short-full": _prefix("Fri 2026-11-20 15:33:21 UTC host kafka[812]: "),
    "journal-short-unix": _prefix("1795188801.101234 host kafka[812]: "),
    "journal-short-monotonic": _prefix("[ 4711.101234] host kafka[812]: "),
}
#: These write a long line in pieces.
IN_PIECES = ("cri", "docker", "json-log", "journal-json")


def wrapped(content: bytes, name: str, cuts: Callable[[bytes], Pieces] = lambda line: [line]) -> bytes:
    """The content with each of its lines wrapped."""
    lines = content.removesuffix(b"\n").split(b"\n")
    return b"".join(out + b"\n" for line in lines for out in WRAPPINGS[name](cuts(line)))
