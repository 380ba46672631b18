"""Anchors of Kafka's records: names of Kafka's classes, contexts, and beginnings of message templates. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from highwater.pipelines.bronze.layouts.loggers import is_kafka, template_keys
from highwater.pipelines.bronze.layouts.times import spelled
from highwater.pipelines.grammars.grammar import parse_context

#: Bytes of a line in which a record of another program has its time.
_TIME_WITHIN = 60
#: Bytes of a text that are searched.
_SEARCHED = 1000
_NAMES = re.compile(rb"[\w.$-]+")
_CLASS = re.compile(r"(?:[a-z_]\w*\.)*[A-Z]\w{3,}|state\.change\.logger|kafka\.request\.logger")
#: A component names itself and its node, or the partition that it is about.
_CONTEXT = re.compile(r"\[(?:[A-Z]\w* )+(?:\w*[iI]d|broker|partition|on [Bb]roker|on [Cc]ontroller)[= ][^\]\n]*\]")
_WORD = re.compile(r"(?<![^\s|\]>)\"':,;(-])[A-Za-z]")
#: Lines that continue a record: stack traces, exceptions and settings. syslog has ``#011`` for a tab.
CONTINUATION = re.compile(
    rb"(?:[ \t]|#011)+at [\w.$/<>@-]+\(|\s*(?:Caused by|Suppressed): |\s*\.\.\. \d+ (?:more|common)"
    rb"|(?:[A-Za-z_$][\w$]*\.)+[A-Za-z_$][\w$]*(?:Exception|Error|Throwable)\b|(?:\t|#011)[\w.]+ = "
)
#: Threads, and up to 1.0 what lines begin with, which has a comma behind it then.
_FETCHER = re.compile(rb"(?:ReplicaFetcherThread-\d+|delete-topics-thread)-\d+")
_TIMED = re.compile(rb"\d:\d\d:\d\d|\b1\d{9}")
_CONTINUED = re.compile(rb"(?:^|[\s|<>(\]:\"'])(?:" + CONTINUATION.pattern + rb")")


def has_anchor(text: bytes) -> bool:
    """Return True if a text contains a name of a Kafka class, a context, or the beginning of a message template."""
    if names_kafka(text):
        return True
    searched = text[:_SEARCHED].decode(errors="replace")
    keys = template_keys()
    return any(searched[word.start() : word.start() + 6] in keys for word in _WORD.finditer(searched))


def names_kafka(text: bytes) -> bool:
    """Return True if a text names a class of Kafka's, or a component with its node or partition."""
    searched = text[:_SEARCHED].decode(errors="replace")
    return bool(_CONTEXT.search(searched)) or any(_is_class(name) for name in _CLASS.findall(searched))


@lru_cache(maxsize=4096)
def _is_class(name: str) -> bool:
    return is_kafka(name)


def is_continued(text: bytes) -> bool:
    """Return True if a text contains a line that continues a record, with any text around it."""
    return _CONTINUED.search(text, 0, _SEARCHED) is not None


def share_of_anchors(texts: Sequence[bytes]) -> float:
    """Return the share (0 to 1) of texts that name something of Kafka or continue a record."""
    asked = [text for text in texts if text.strip()][:: max(1, len(texts) // 40)]
    return sum(has_anchor(text) or is_continued(text) for text in asked) / len(asked) if asked else 0.0


def time_shape(text: bytes) -> str | None:
    """Return the characters at the start of a line with the form of its time, without fraction. None without a time."""
    time = spelled(text, _TIME_WITHIN)
    if time is None:
        return None
    signs = _NAMES.sub(b"w", text[: time.start]).decode("latin-1")
    clock, _, fraction = time.shape.partition("ss")
    return signs + clock + fraction[: fraction[1:2] == "S"]


def is_timed(text: bytes, within: int) -> bool:
    """Return True if a line has a time within its first `within` bytes, so that it may begin a record."""
    return not text.startswith(b"\t") and _TIMED.search(text, 0, within) is not None and not is_continued(text)


def is_foreign(text: bytes, own: str | None) -> bool:
    """Return True if a line begins like a record of another program: with a time of another form.

    Args:
        own: `time_shape` of the log's records. A line with such a time is a damaged line of Kafka. None if unknown.
    """
    if text[:1] in (b"\t", b" ", b"") or CONTINUATION.match(text):
        return False
    if text.startswith(b"{"):
        return (own is None or own[:1] != "{") and _TIMED.search(text) is not None and has_anchor(text)
    shape = time_shape(text)
    return shape is not None and shape != own


def is_context(text: bytes) -> bool:
    """Return True if a bracket's text is a prefix of Kafka messages: a component with its node or partition."""
    if b"=" in text:
        return True
    if _FETCHER.fullmatch(text):
        return False
    context = parse_context(text.decode(errors="replace"))
    return any(part is not None for part in context[:6])
