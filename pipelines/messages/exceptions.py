"""The exceptions that appear in broker logs: what they mean and what to do, and the innermost one of a stack trace.

The table is data, ``exceptions.toml``: by class name, or by the text of the error where one class has several causes.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import msgspec

_THROWN = re.compile(
    r"^(?:\s*(?:Caused by: |Suppressed: )|Exception in thread \"[^\"]*\" )?"
    r"(?P<name>(?:[a-z_]\w*\.)+[A-Z][\w$]*)(?:: (?P<text>.*))?$"
)
_IN_TEXT = re.compile(
    r"(?<![\w$])(?<!\w\.)(?P<name>(?:(?:[a-z_]\w*\.)+)[A-Z][\w$]*(?:Exception|Error))(?::\s*(?P<text>[^\n]*))?"
)


class Cause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry: what an exception or a native error means."""

    meaning: str  #: one sentence
    action: str  #: what to do
    classes: tuple[str, ...] = ()  #: simple names of exception classes; empty: any
    texts: tuple[str, ...] = ()  #: parts of the error's text, of which one has to occur; empty: any


class Thrown(NamedTuple):
    """An exception as a stack trace shows it."""

    name: str  #: simple name of the class
    text: str  #: its message; empty: none

    def __str__(self) -> str:
        return f"{self.name}: {self.text}" if self.text else self.name


def innermost(record: str) -> Thrown | None:
    """Return the innermost exception of a record with its message. None if the record shows none.

    "Caused by" lines name causes from the outermost to the innermost one. Suppressed exceptions are no causes.
    """
    lines = record.split("\n")
    thrown: Thrown | None = None
    for line in lines[1:]:
        match = _THROWN.match(line.rstrip())
        if match is not None and not line.lstrip().startswith("Suppressed:"):
            thrown = Thrown(_simple(match["name"]), (match["text"] or "").strip())
    if thrown is not None:
        return thrown
    match = _IN_TEXT.search(lines[0])
    if match is None:
        return None
    return Thrown(_simple(match["name"]), _without_tail(match["text"] or ""))


def _simple(name: str) -> str:
    return name.rpartition(".")[2].rpartition("$")[2]


def _without_tail(text: str) -> str:
    return re.sub(r" \([\w.$]+\)$", "", text.strip())


@cache
def causes() -> dict[str, Cause]:
    """Return the table, by id."""
    return msgspec.toml.decode(files(__package__).joinpath("exceptions.toml").read_bytes(), type=dict[str, Cause])


def cause_of(thrown: Thrown) -> tuple[str, Cause] | None:
    """Return id and entry of an exception. None if the table has none; an entry with a matching text comes first."""
    matching = [
        (name, cause)
        for name, cause in causes().items()
        if (not cause.classes or thrown.name in cause.classes)
        and (not cause.texts or any(text.lower() in thrown.text.lower() for text in cause.texts))
    ]
    return max(matching, key=lambda item: (bool(item[1].texts), bool(item[1].classes)), default=None)
