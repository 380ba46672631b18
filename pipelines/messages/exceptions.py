"""Exceptions in broker logs: what they mean, what to do, and the one of a stack trace that says most.

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
#: Actions of entries that say no more than to read what the line shows.
_READ_ONLY = ("", "Read the exception.", "Read the error.")
_READ_FIRST = re.compile(r"^Read the exception(?: before this line)?(?:;|,? and|, then|,) ")
_REFERS = re.compile(r"\b(?:exception|stack trace)\b")


class Cause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of the table: the meaning of an exception or a native error."""

    meaning: str  #: one sentence
    action: str  #: what to do
    classes: tuple[str, ...] = ()  #: simple names of exception classes; empty: any
    texts: tuple[str, ...] = ()  #: parts of the error's text; at least one must occur; empty: any


class Thrown(NamedTuple):
    """An exception as a stack trace shows it."""

    name: str  #: simple name of the class
    text: str  #: its message; empty: none

    def __str__(self) -> str:
        return f"{self.name}: {self.text}" if self.text else self.name


def most_specific(record: str) -> Thrown | None:
    """Return the most specific exception of a record, with its message. None if the record shows no exception.

    "Caused by" lines name causes from the outermost to the innermost. Suppressed exceptions are not causes. The
    innermost exception whose text is in the table is the most specific, then the innermost exception with a message. A
    cause without a message, such as CancellationException, is less specific than the exception around it.
    """
    lines = record.split("\n")
    found: list[Thrown] = []
    for line in lines[1:]:
        match = _THROWN.match(line.rstrip())
        if match is not None and not line.lstrip().startswith("Suppressed:"):
            found.append(Thrown(_simple(match["name"]), (match["text"] or "").strip()))
    if found:
        known = (thrown for thrown in reversed(found) if (cause := cause_of(thrown)) is not None and cause[1].texts)
        return next(known, None) or next((thrown for thrown in reversed(found) if thrown.text), found[-1])
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
    """Load the table of exceptions: entries by id."""
    return msgspec.toml.decode(files(__package__).joinpath("exceptions.toml").read_bytes(), type=dict[str, Cause])


def advice_of(action: str, cause: Cause | None) -> str:
    """Return the advice for a line from the action of its entry and the cause of its exception.

    A cause that is known by its text comes first. The action of the line comes before the advice for a class of
    exceptions. If the action refers to the exception, the advice for the class is added.
    """
    if cause is None or not cause.action:
        return action
    if cause.texts or action in _READ_ONLY:
        return cause.action
    if not _REFERS.search(action):
        return action
    rest = _READ_FIRST.sub("", action)
    return f"{rest[0].upper()}{rest[1:]} {cause.action}"


def cause_of(thrown: Thrown) -> tuple[str, Cause] | None:
    """Return id and most specific entry of an exception. None if the table has no entry."""
    text = thrown.text.lower()
    matching = [
        (name, cause, max((len(part) for part in cause.texts if part.lower() in text), default=0))
        for name, cause in causes().items()
        if not cause.classes or thrown.name in cause.classes
    ]
    found = [item for item in matching if item[2] or not item[1].texts]
    best = max(found, key=lambda item: (item[2], bool(item[1].classes)), default=None)
    return None if best is None else best[:2]
