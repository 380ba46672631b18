"""Types of files by their content: broker logs, bundles of them, and other files that are found near logs. Pure.

The name matters only for Java archives, which are zip files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Final

from highwater.pipelines.bronze.encodings import is_binary
from highwater.pipelines.bronze.known import KNOWN
from highwater.pipelines.bronze.layout import Layout
from highwater.pipelines.bronze.layouts.anchors import is_continued
from highwater.pipelines.bronze.layouts.infer import sees_kafka
from highwater.pipelines.bronze.process_files import GC_LOG
from highwater.pipelines.bronze.source import BOM, TAR_AT, TAR_MAGIC, ZIP_MAGIC, Source
from highwater.pipelines.bronze.wrappers.pieces import split
from highwater.pipelines.bronze.wrappers.recognise import recognise

#: Bytes of a file that are looked at: at its beginning, and in its middle and at its end.
HEAD_BYTES: Final = 1 << 16
PART_BYTES: Final = 1 << 14
ZIP, TAR = "zip", "tar"
#: What a file is.
EMPTY, BINARY, TEXT, CLIENT = "empty file", "binary file", "other text", "log of a client of Kafka"
SPECIAL = "special file"
_MAGIC: Final = tuple((text.encode("latin-1"), label) for label, texts in KNOWN.magic.items() for text in texts)
_TEXTS: Final = (
    (
        GC_LOG,
        re.compile(rb"\[gc[\],\s]|GC\(\d+\)|\[(?:Full )?GC |CommandLine flags: |^# Java GC|\[Times: user=", re.M),
    ),
    ("thread dump", re.compile(rb"^Full thread dump ", re.M)),
    ("markup", re.compile(rb"\A\s*<(?:!|\?xml|html|\w+>)", re.I)),
)
#: Share of the lines of a text that are records, or continue one, if it is a log.
_LOG_SHARE_MIN: Final = 0.2
#: A line of a settings file, and how many lines are looked at.
_SETTING: Final = re.compile(rb"\s*(?:[#;!]|\[[\w.-]{1,200}\]\s*$|---|- |[\w.-]{1,200}\s?[=:])")
_SETTINGS_MIN, _SETTINGS_SEEN = 3, 20
#: Texts that a broker's log may have: without one of them a file is not looked at closely.
_KAFKA: Final = re.compile(
    rb"kafka|\[\w[\w ]{0,40} (?:id|broker|nodeId|brokerId|replicaId|controllerId)=\d|\b(?:Broker|Controller) \d+ "
    rb"|leader ?epoch|\bISR\b|ReplicaManager|GroupCoordinator|log\.LogCleaner",
    re.I,
)
_LEVEL: Final = re.compile(rb"\b(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b", re.I)
_TIME: Final = re.compile(rb"\d\d:\d\d:\d\d")


def bundle_form(name: str, stored: bytes) -> str | None:
    """Return `ZIP` or `TAR` if a file is a bundle, by its first bytes. None if it is not a bundle.

    Args:
        name: name of the file. Java archives and office documents are zip files, too.
        stored: beginning of the file, as stored.
    """
    if stored.startswith(ZIP_MAGIC):
        return None if _OTHER_ZIP.fullmatch(name) else ZIP
    return TAR if beginning(stored).startswith(TAR_MAGIC, TAR_AT) else None


_OTHER_ZIP: Final = re.compile(r".+\.(?:jar|war|ear|xlsx|docx|pptx|odt|ods|odp|whl|egg|apk|kmz)", re.I)


def beginning(stored: bytes) -> bytes:
    """Return the beginning of the content, decompressed and in UTF-8."""
    return b"".join(Source(BytesIO(stored)).blocks(HEAD_BYTES))


def is_log_content(parts: Iterable[bytes]) -> bool:
    """Return True if a part of a content has records of a broker, or seems to have.

    Args:
        parts: the beginning, and later parts that may begin and end within a line.
    """
    for part in parts:
        if _KAFKA.search(part) is None:
            continue
        lines = part.removeprefix(BOM).replace(b"\r\n", b"\n").split(b"\n")
        lines = lines[:-1] if len(lines) > 2 else lines
        layout = recognise(lines).layout
        if looks_like_log(lines) if layout is None else _is_mostly(layout, lines):
            return True
    return False


def _is_mostly(layout: Layout, lines: list[bytes]) -> bool:
    """Return True if most lines are a log, so that it is not a text that quotes a few log lines."""
    pieces = [piece for piece in split([b"\n".join(lines) + b"\n"], layout.pieces, HEAD_BYTES) if piece.text.strip()]
    own = sum(piece.lines for piece in pieces if _is_own(layout, piece.text))
    return own >= _LOG_SHARE_MIN * sum(piece.lines for piece in pieces)


def _is_own(layout: Layout, text: bytes) -> bool:
    """Return True if a record begins or continues in a piece of text, or if it belongs to a frame around records."""
    items = [(b"", text, False, 0)] if layout.unwrap is None else layout.unwrap(text)
    size = len(text) - text.count(b"\n") - text.count(b"\r")
    return any(
        len(line) < size or layout.start.match(line) or line.startswith(b"\t") or is_continued(line)
        for _, line, _, _ in items or [(b"", text, False, 0)]
    )


def looks_like_log(lines: list[bytes]) -> bool:
    """Return True if lines name classes of Kafka, and most of them have a time and a level."""
    written = [line for line in lines if line.strip()]
    dated = sum(_TIME.search(line) is not None and _LEVEL.search(line) is not None for line in written)
    return 2 * dated >= len(written) > 0 and sees_kafka(written)


def type_of(content: bytes) -> str:
    """Return the type of a file that is not a broker's log, for example "image".

    Args:
        content: beginning of the file's content.
    """
    if not content:
        return EMPTY
    for magic, label in _MAGIC:
        if content.startswith(magic):
            return label
    if content.startswith(ZIP_MAGIC):
        return "archive"
    if is_binary(content):
        return BINARY
    otherwise = "settings file" if _is_settings(content) else TEXT
    return next((label for label, pattern in _TEXTS if pattern.search(content)), otherwise)


def _is_settings(content: bytes) -> bool:
    """Return True if the first lines are settings or remarks, at least three of them."""
    lines = [line for line in content.split(b"\n", _SETTINGS_SEEN)[:_SETTINGS_SEEN] if line.strip()]
    return len(lines) >= _SETTINGS_MIN and all(_SETTING.match(line) for line in lines)


def listed(counts: Mapping[str, int]) -> str:
    """Return counts of types in words: ``12 files are not broker logs: 9 gc.log, 2 images, 1 hs_err``."""
    total = sum(counts.values())
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    parts = ", ".join(f"{count} {KNOWN.types.get(label, label) if count > 1 else label}" for label, count in ordered)
    return f"{total} files are not broker logs: {parts}" if total > 1 else f"1 file is not a broker log: {parts[2:]}"
