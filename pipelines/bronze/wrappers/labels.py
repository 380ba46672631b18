"""Which label names the source of a record: the one whose values go with the brokers. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from highwater.pipelines.bronze.identity import named_broker
from highwater.pipelines.bronze.layouts.anchors import has_anchor, is_continued
from highwater.pipelines.bronze.layouts.loggers import is_kafka
from highwater.pipelines.bronze.layouts.patterns import LEVEL_ALIASES
from highwater.pipelines.bronze.layouts.times import spelled

#: A label has at most this many values, and each of them at most this many characters.
_VALUES_MAX = 200
_LENGTH_MAX = 200
#: Votes beyond this share make a decision.
_AGREEMENT = 0.95
_ASKED = 400


def label_column(columns: Mapping[str, Sequence[Any]], texts: Sequence[str | bytes]) -> str | None:
    """Return the column that names the source of each text. None if there is none, or only one source.

    Args:
        columns: values by column name, one per text.
        texts: records, or lines that continue one.
    """
    step = max(1, len(texts) // _ASKED)
    asked = [text if isinstance(text, bytes) else text.encode(errors="replace") for text in texts[::step]]
    labels = {
        name: [item if isinstance(item, str) else None for item in items[::step]] for name, items in columns.items()
    }
    labels = {name: items for name, items in labels.items() if _is_label(items)}
    if not labels:
        return None
    brokers = [named_broker(text) for text in asked]
    if len(set(brokers) - {None}) > 1:
        fitting = {name: len(set(items)) for name, items in labels.items() if _go_together(items, brokers)}
        return min(fitting, key=fitting.__getitem__) if fitting else None
    numbered = [name for name, items in labels.items() if len({re.sub(r"\d+", "#", str(item)) for item in items}) == 1]
    one_each = [name for name in numbered if _is_one_each(labels[name], brokers)]
    if numbered and not one_each:
        return None
    numbered = one_each
    if numbered:
        return min(numbered, key=lambda name: len(set(labels[name])))
    kinds = [None if is_continued(text) or not text.strip() else has_anchor(text) for text in asked]
    if kinds.count(False) * 20 < len(kinds):
        return None
    pure = {name: len(set(items)) for name, items in labels.items() if _go_together(items, kinds)}
    return min(pure, key=pure.__getitem__) if pure else None


def _is_label(items: Sequence[Any]) -> bool:
    values = {item for item in items if isinstance(item, str)}
    if sum(isinstance(item, str) and item != "" for item in items) < 0.9 * len(items):
        return False
    few = 1 < len(values) <= min(_VALUES_MAX, max(2, len(items) // 2)) or 1 < len(values) == len(items) <= 4
    return (
        few
        and all(len(value) <= _LENGTH_MAX and re.search(r"[A-Za-z]|\d\.\d", value) for value in values)
        and not all(value.upper().strip().encode() in LEVEL_ALIASES for value in values)
        and not any(map(is_kafka, values))
        and not any(_is_time(value.encode(errors="replace")) for value in values)
    )


def _is_time(value: bytes) -> bool:
    time = spelled(value, len(value))
    return time is not None and len(value) < time.end - time.start + 4


def is_one_each(labels: Sequence[Any], texts: Sequence[bytes]) -> bool:
    """Return True if no broker is named under two labels. Otherwise labels may be, for example, threads of a broker.

    Args:
        labels, texts: the label and the text of each line.
    """
    step = max(1, len(texts) // _ASKED)
    return _is_one_each(labels[::step], [named_broker(text) for text in texts[::step]])


def _is_one_each(labels: Sequence[Any], brokers: Sequence[int | None]) -> bool:
    """Return True if no broker is named under two labels."""
    pairs = {(label, broker) for label, broker in zip(labels, brokers, strict=True) if broker is not None}
    return len({broker for _, broker in pairs}) == len(pairs)


def _go_together(labels: Sequence[Any], kinds: Sequence[Any]) -> bool:
    """Return True if each label has one kind, and the labels do not share one."""
    votes: dict[Any, Counter[Any]] = defaultdict(Counter)
    for label, kind in zip(labels, kinds, strict=True):
        if kind is not None:
            votes[label][kind] += 1
    agreeing = sum(max(counts.values()) for counts in votes.values())
    if agreeing < _AGREEMENT * sum(counts.total() for counts in votes.values()):
        return False
    return len({counts.most_common(1)[0][0] for counts in votes.values()}) > 1
