"""Anchors of a record of Kafka's: names of its classes, contexts, and beginnings of its message templates. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from pipelines.bronze.layouts.loggers import is_kafka, template_keys

#: Bytes of a text that are searched.
_SEARCHED = 1000
_CLASS = re.compile(r"(?:[a-z_]\w*\.)*[A-Z]\w{3,}|state\.change\.logger|kafka\.request\.logger")
#: A component names itself and its node, or the partition that it is about.
_CONTEXT = re.compile(r"\[(?:[A-Z]\w* )+(?:\w*[iI]d|broker|partition|on [Bb]roker|on [Cc]ontroller)[= ][^\]\n]*\]")
_WORD = re.compile(r"(?<![^\s|\]>)\"':,;(-])[A-Za-z]")
#: Lines that continue a record: frames and causes of a stack trace, exceptions, and settings.
CONTINUATION = re.compile(
    rb"\s+at [\w.$/<>@-]+\(|\s*(?:Caused by|Suppressed): |\s*\.\.\. \d+ (?:more|common)"
    rb"|(?:[A-Za-z_$][\w$]*\.)+[A-Za-z_$][\w$]*(?:Exception|Error|Throwable)\b|\t[\w.]+ = "
)
_CONTINUED = re.compile(rb"(?:^|[\s|>\]:\"'])(?:" + CONTINUATION.pattern + rb")")


def has_anchor(text: bytes) -> bool:
    """Return True if a text names a class of Kafka's, a context, or begins a message template somewhere."""
    searched = text[:_SEARCHED].decode(errors="replace")
    if _CONTEXT.search(searched) or any(_is_class(name) for name in _CLASS.findall(searched)):
        return True
    keys = template_keys()
    return any(searched[word.start() : word.start() + 6] in keys for word in _WORD.finditer(searched))


@lru_cache(maxsize=4096)
def _is_class(name: str) -> bool:
    return is_kafka(name)


def is_continued(text: bytes) -> bool:
    """Return True if a text contains a line that continues a record, whatever is around it."""
    return _CONTINUED.search(text, 0, _SEARCHED) is not None


def share_of_anchors(texts: Sequence[bytes]) -> float:
    """Return the share of texts with an anchor, among those that continue no record."""
    asked = [text for text in texts if text.strip() and not is_continued(text)][:: max(1, len(texts) // 40)]
    return sum(map(has_anchor, asked)) / len(asked) if asked else 0.0
