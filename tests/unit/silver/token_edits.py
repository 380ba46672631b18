"""Real lines with one token dropped, repeated or respelt, and what may become of their facts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from highwater.pipelines.grammars.record import LineFact, Parsed
from tests.reading import columns_of

_TOKEN = re.compile(r"[A-Za-z_]+|\d+|\s|.", re.ASCII | re.DOTALL)

#: Columns that quote the line or a text of someone else's: they change with every token.
FREE_TEXT = frozenset(("detail", "error"))

#: Where a line names a value like ``isr=1,3`` or ``ISR [1, 2]``, the column that must hold all of it.
_NAMED = re.compile(
    r"(?:\b(isr|replicas|leader|leaderEpoch|zkVersion|partitionEpoch)=|\b(ISR)[: ])"
    r"(\w*[\[(][\d, ]*[\])]|\d+(?:,\d+)*)",
    re.ASCII,
)

_COLUMNS = {
    "isr": "isr",
    "ISR": "isr",
    "replicas": "replicas",
    "leader": "leader",
    "leaderEpoch": "leader_epoch",
    "zkVersion": "partition_epoch",
    "partitionEpoch": "partition_epoch",
}


class Edit(NamedTuple):
    """A token at `start` that became another text."""

    start: int
    before: str
    after: str

    @property
    def is_another_number(self) -> bool:
        """Whether a number became another one: 0 and 00 are the same."""
        return self.before.isdigit() and self.after.isdigit() and int(self.before) != int(self.after)

    def of(self, text: str) -> str:
        """The text with the edit."""
        return text[: self.start] + self.after + text[self.start + len(self.before) :]


def edits(text: str) -> Iterator[Edit]:
    """Each token of a text dropped, repeated, and, if it is a word or a number, respelt."""
    for match in _TOKEN.finditer(text):
        token = match[0]
        yield Edit(match.start(), token, "")
        yield Edit(match.start(), token, token * 2)
        if token.isdigit():
            yield Edit(match.start(), token, str(int(token) + 90))
        elif token.isalpha():
            yield Edit(match.start(), token, token[:-1] + ("q" if token[-1] != "q" else "z"))


def named_values(text: str) -> Iterator[tuple[str, int, int]]:
    """Columns whose values a text names, with the place of each value."""
    for match in _NAMED.finditer(text):
        yield _COLUMNS[match[1] or match[2]], match.start(3), match.end(3)


def wrong(edit: Edit, before: tuple[LineFact, ...], after: Parsed) -> str | None:
    """What is wrong with an edited line's facts; None if they are the same, or tell the edit, or there are none."""
    if not after.facts:
        return None
    if [fact.table for fact in before] != [fact.table for fact in after.facts]:
        return "other facts"
    for old, new in zip(before, after.facts, strict=True):
        if columns_of(old).keys() != columns_of(new).keys():
            return "other columns"
        if _partition_follows(edit, columns_of(old), columns_of(new)):
            continue
        for column, value in columns_of(old).items():
            if column not in FREE_TEXT and not _follows(edit, value, columns_of(new)[column]):
                return f"{column}: {value!r} became {columns_of(new)[column]!r}"
    return None


def _partition_follows(edit: Edit, old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether only the partition's name changed, and as the edit says: ``t--0`` is partition 0 of the topic ``t-``."""
    names = [f"{row.get('topic')}-{row.get('partition')}" for row in (old, new)]
    apart = {"topic", "partition", *FREE_TEXT}
    same = all(old[column] == new[column] for column in old.keys() - apart)
    return same and old.get("partition") is not None and names[1] in _respelt(edit, names[0])


def _follows(edit: Edit, old: Any, new: Any) -> bool:
    """Whether a value is the old one, or has the same edit in it."""
    if old == new:
        return True
    if isinstance(old, list) and isinstance(new, list):
        if all(isinstance(item, int) for item in (*old, *new)):
            return any(
                between.join(map(str, new)) in _respelt(edit, between.join(map(str, old))) for between in (",", ", ")
            )
        return len(old) == len(new) and all(_follows(edit, a, b) for a, b in zip(old, new, strict=True))
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_follows(edit, old[key], new[key]) for key in old)
    if old is None and isinstance(new, int):  # -1 and -2 say that there is none
        return str(new) in _respelt(edit, "-1") | _respelt(edit, "-2")
    if type(old) is not type(new) or not isinstance(old, (int, str)) or isinstance(old, bool):
        return False
    if isinstance(old, str):
        return new in _respelt(edit, old) or (edit.before == "-" and new == f"{old}-")  # t--0: the topic t-
    # Some columns are one more or one less than what the line prints: the offset after the last one.
    return any(str(new + shift) in _respelt(edit, str(old + shift)) for shift in (0, 1, -1))


def _respelt(edit: Edit, text: str) -> set[str]:
    """A value's text with the edit at each place where it can be; numbers as they are printed."""
    places = [match.start() for match in re.finditer(re.escape(edit.before), text)]
    spelt = {text[:at] + edit.after + text[at + len(edit.before) :] for at in places}
    return spelt | {str(int(one)) for one in spelt if re.fullmatch(r"-?\d+", one, re.ASCII)}
