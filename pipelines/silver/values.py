"""Values in log lines: numbers, partitions, lists, sets and maps as Scala and Java print them.

Every function raises ValueError for what it cannot read; the machinery turns that into an unparsed line with its
problem.
"""

from __future__ import annotations

import re

#: Topic and index, with a dash (``t-0``) or, up to 0.11, as a pair (``[t,0]``). A topic's own dashes and digits are
#: no obstacle: the match is greedy, so the last dash splits.
PARTITION = r"(?:[\w.-]+-\d+|\[[\w.-]+,\s?\d+\])"

#: The same with its topic id before it (``TopicIdPartition``, 3.1 and later).
ID_PARTITION = rf"(?:(?:[\w-]{{22}}|null):)?{PARTITION}"

#: ``LogOffsetMetadata``: ``(offset=5 segment=[0:12])`` to 3.4, with a comma since 3.5, ``5 [0 : 12]`` up to 1.x. One
#: group, the offset.
OFFSET = r"\(?(?:offset=)?(-?\d+),? (?:segment=)?\[-?\d+ ?: ?-?\d+\]\)?"

#: A collection of integers however printed: ``1,2``, ``[1, 2]``, ``Set(1, 2)``, ``HashSet()``.
INT_LIST = r"(?:\w*[\[(])?[-\d, ]*[\])]?"

_PARTITION = re.compile(PARTITION, re.ASCII)
_INT = re.compile(r"-?\d+", re.ASCII)
_PAIR = re.compile(r"(\w+)=('[^']*'|\w*[\[(][^\[\]()]*[\])]|[^,()\[\]]*)", re.ASCII)
_BROKER_STATE = re.compile(r"brokerId=(-?\d+)", re.ASCII)
_TOPIC_ID = re.compile(r"[\w-]{22}", re.ASCII)

#: No topic: what Kafka prints for a missing topic id.
ZERO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"

_MAX_CACHED = 100_000
_partitions: dict[str, tuple[str, int]] = {}


def i32(text: str) -> int:
    """A number that fits an INT column."""
    value = int(text)
    if -2147483648 <= value <= 2147483647:
        return value
    raise ValueError(f"beyond 32 bits: {text[:40]}")


def i64(text: str) -> int:
    """A number that fits a LONG column."""
    value = int(text)
    if -9223372036854775808 <= value <= 9223372036854775807:
        return value
    raise ValueError(f"beyond 64 bits: {text[:40]}")


def optional_i64(text: str | None) -> int | None:
    """As `i64`; None for a group that did not take part and for the words Kafka puts in place of a number."""
    return None if text is None or text in ("unknown", "null", "None") else i64(text)


def optional_i32(text: str | None) -> int | None:
    """As `optional_i64`, for an INT column."""
    return None if text is None or text in ("unknown", "null", "None") else i32(text)


def partition_of(text: str) -> tuple[str, int]:
    """Topic and index of ``t-0``, ``[t,0]`` or ``<topic id>:t-0``; split at the last dash."""
    found = _partitions.get(text)
    if found is not None:
        return found
    name = text.rpartition(":")[2]
    if name.startswith("["):
        topic, comma, index = name[1:-1].rpartition(",")
        if not comma:
            raise ValueError(f"no partition: {text[:80]}")
        found = topic, i32(index)
    else:
        topic, dash, index = name.rpartition("-")
        if not dash or not topic:
            raise ValueError(f"no partition: {text[:80]}")
        found = topic, i32(index)
    if found[1] < 0:
        raise ValueError(f"negative partition: {text[:80]}")
    if len(_partitions) < _MAX_CACHED:
        _partitions[text] = found
    return found


def topic_id_of(text: str | None) -> str | None:
    """A topic id out of ``Some(id)``, ``Optional[id]`` or itself; None for a missing or a zero one."""
    if text is None:
        return None
    match = _TOPIC_ID.search(text)
    return None if match is None or match[0] == ZERO_TOPIC_ID else match[0]


def ints(text: str) -> list[int]:
    """Integers in the order in which they are printed."""
    return [i32(number) for number in _INT.findall(text)]


def optional_ints(text: str | None) -> list[int] | None:
    """As `ints`; None where the text is missing or ``null``."""
    return None if text is None or text == "null" else ints(text)


def members(text: str) -> str:
    """The inside of ``Set(...)``, ``[...]`` or the text itself."""
    text = text.strip()
    if text.endswith(")") and "(" in text:
        return text[text.index("(") + 1 : -1]
    if text.startswith("[") and text.endswith("]"):
        return text[1:-1]
    return text


def partitions(text: str) -> list[tuple[str, int]]:
    """Partitions of a printed collection, every one of them."""
    inside = text
    if _PARTITION.sub("", inside).strip(" ,"):
        inside = members(text)
        if _PARTITION.sub("", inside).strip(" ,"):
            raise ValueError(f"not only partitions: {inside[:80]}")
    return [partition_of(name) for name in _PARTITION.findall(inside)]


def pairs(text: str) -> dict[str, str]:
    """``key=value`` pairs of a record's ``toString``; quotes are taken off, lists stay text."""
    return {key: value.strip().strip("'") for key, value in _PAIR.findall(text)}


def isr_of(state: str) -> list[int] | None:
    """ISR of a printed ``LeaderAndIsr``: ``isr=List(1, 2)``, or ``isrWithBrokerEpoch=`` since 3.5."""
    start = state.find("isrWithBrokerEpoch=")
    if start < 0:
        return optional_ints(pairs(state).get("isr"))
    stop = state.find("leaderRecoveryState=", start)
    return [i32(number) for number in _BROKER_STATE.findall(state, start, len(state) if stop < 0 else stop)]
