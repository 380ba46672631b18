"""Values in log lines: numbers, partitions, lists, sets and maps as Scala and Java print them.

Every function raises ValueError for an invalid text; the machinery turns it into an unparsed line with its problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

#: Topic and index, with a dash (``t-0``) or, up to 0.11, as a pair (``[t,0]``). A topic's own dashes and digits are
#: no obstacle: the match is greedy, so the last dash splits.
PARTITION = r"(?:[\w.-]+-\d+|\[[\w.-]+,\s?\d+\])"

#: The same with its topic id before it (``TopicIdPartition``, 3.1 and later).
ID_PARTITION = rf"(?:(?:[\w-]{{22}}|null):)?{PARTITION}"

#: ``LogOffsetMetadata``: ``(offset=5 segment=[0:12])`` to 3.4, ``(offset=5segment=[0:12])`` in 3.5, later with a comma,
#: ``5 [0 : 12]`` up to 1.x. One group, the offset.
OFFSET = r"\(?(?:offset=)?(-?\d+)(?:,? |(?=segment=))(?:segment=)?\[-?\d+ ?: ?-?\d+\]\)?"


def name_offset(name: str) -> str:
    """Return the pattern `OFFSET` with a named group."""
    return OFFSET.replace("(-", f"(?P<{name}>-", 1)


#: Names under which Scala prints its collections, by release and by size.
_COLLECTIONS = (
    "List|Set|HashSet|ListSet|TreeSet|BitSet|LinkedHashSet|ArrayBuffer|ArraySeq|WrappedArray|Buffer|ListBuffer|Vector|"
    "Iterable|Seq"
)
COLLECTION_NAMES = tuple(_COLLECTIONS.split("|"))

_IDS = r"(?:\d+(?:, ?\d+)*)?"

#: Ids of brokers however a release prints them: ``1,2`` (without blanks, so that it ends where its field ends),
#: ``[1, 2]``, ``Set(1, 2)``, ``HashSet()``, or nothing at all.
INT_LIST = rf"(?:\[{_IDS}\]|(?:{_COLLECTIONS})\({_IDS}\)|\d+(?:,\d+)*|)"

_NAME = re.compile(r"(?:(?:[\w-]{22}|null):)?(?:([\w.-]+)-(\d+)|\[([\w.-]+),\s?(\d+)\])", re.ASCII)
_INT = re.compile(r"-?\d+", re.ASCII)
_INT_LIST = re.compile(INT_LIST, re.ASCII)
_TOPIC_ID = re.compile(r"[\w-]{22}", re.ASCII)
_OPTION = re.compile(r"Some\((.+)\)|Optional(?:Int)?\[(.+)\]")
_NOTHING = frozenset(("None", "Optional.empty", "OptionalInt.empty", "null"))

#: No topic: what Kafka prints for a missing topic id.
ZERO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"

_MAX_CACHED = 100_000
_partitions: dict[str, tuple[str, int]] = {}


def match_whole(pattern: re.Pattern[str], text: str, expected: str) -> re.Match[str]:
    """Match a whole text.

    Raises:
        ValueError: no match. The message names what was `expected`.
    """
    match = pattern.fullmatch(text)
    if match is None:
        raise ValueError(f"no {expected}: {text[:80]}")
    return match


def match_items(pattern: re.Pattern[str], text: str, expected: str) -> Iterator[re.Match[str]]:
    """Yield consecutive matches that cover a text completely.

    Raises:
        ValueError: they do not.
    """
    position = 0
    while position < len(text):
        match = pattern.match(text, position)
        if match is None:
            raise ValueError(f"no {expected}: {text[position : position + 80]}")
        yield match
        position = match.end()


def i32(text: str) -> int:
    """Return a number that fits an INT column.

    Raises:
        ValueError: it does not fit.
    """
    value = int(text)
    if -2147483648 <= value <= 2147483647:
        return value
    raise ValueError(f"beyond 32 bits: {text[:40]}")


def i64(text: str) -> int:
    """Return a number that fits a LONG column.

    Raises:
        ValueError: it does not fit.
    """
    value = int(text)
    if -9223372036854775808 <= value <= 9223372036854775807:
        return value
    raise ValueError(f"beyond 64 bits: {text[:40]}")


def optional_i64(text: str | None) -> int | None:
    """Return a number as `i64` does. None for None, "unknown", "null" and "None"."""
    return None if text is None or text in ("unknown", "null", "None") else i64(text)


def optional_i32(text: str | None) -> int | None:
    """Return a number as `i32` does. None for None, "unknown", "null" and "None"."""
    return None if text is None or text in ("unknown", "null", "None") else i32(text)


def parse_partition(text: str) -> tuple[str, int]:
    """Return (topic, partition) of ``t-0``, ``[t,0]`` or ``<topic id>:t-0``. The last dash separates them."""
    known = _partitions.get(text)
    if known is not None:
        return known
    match = match_whole(_NAME, text, "partition")
    partition = match[1] or match[3], i32(match[2] or match[4])
    if len(_partitions) < _MAX_CACHED:
        _partitions[text] = partition
    return partition


def flag(text: str) -> bool:
    """Return the boolean of ``true`` or ``false``."""
    if text not in ("true", "false"):
        raise ValueError(f"neither true nor false: {text[:80]}")
    return text == "true"


def option(text: str | None) -> str | None:
    """Return the content of ``Some(x)``, ``Optional[x]``, ``OptionalInt[x]``, or ``x`` itself. None if empty."""
    if text is None or text in _NOTHING:
        return None
    match = _OPTION.fullmatch(text)
    return match[1] or match[2] if match else text


def parse_topic_id(text: str | None) -> str | None:
    """Return a topic id, printed plain or as an option. None for a missing or all-zero id."""
    topic_id = option(text)
    if topic_id is None or topic_id == ZERO_TOPIC_ID:
        return None
    return match_whole(_TOPIC_ID, topic_id, "topic id")[0]


def ints(text: str) -> list[int]:
    """Return the ids of a printed list without duplicates, in printed order."""
    match_whole(_INT_LIST, text, "list of ids")
    numbers = [i32(number) for number in _INT.findall(text)]
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"an id twice: {text[:80]}")
    return numbers


def optional_ints(text: str | None) -> list[int] | None:
    """Return ids as `ints`; None for a missing text or ``null``."""
    return None if text is None or text == "null" else ints(text)
