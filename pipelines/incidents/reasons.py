"""Reasons of failures: the innermost exception of a record, with what it means and what to do. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from highwater.pipelines.incidents.words import shortened
from highwater.pipelines.messages.exceptions import Cause, Thrown, cause_of, most_specific


class Reason(NamedTuple):
    """An exception with what the table of exceptions says of it."""

    thrown: Thrown  #: innermost exception
    cause: Cause | None  #: None if the table has no entry

    def __str__(self) -> str:
        return shortened(str(self.thrown).rstrip(". "))

    @property
    def words(self) -> str:
        """Return the exception, and a sentence about its meaning."""
        return f"{self}. {self.cause.meaning}" if self.cause is not None else f"{self}."

    @property
    def action(self) -> str:
        """Return what to do; empty if the table does not say."""
        return "" if self.cause is None else self.cause.action


def reason_of(message: str) -> Reason | None:
    """Return the reason that a record shows. None if it shows no exception."""
    thrown = most_specific(message)
    if thrown is None:
        return None
    found = cause_of(thrown)
    return Reason(thrown, None if found is None else found[1])


def best_reason(messages: Iterable[str]) -> Reason | None:
    """Return the most specific reason of several records, the first of equal ones. None if none shows an exception.

    An error that the table knows by its text, such as "No space left on device", is more specific than a class of
    exceptions, which may wrap it.
    """
    reasons = [reason for message in messages if (reason := reason_of(message)) is not None]
    return max(reasons, key=_precision, default=None)


def _precision(reason: Reason) -> tuple[bool, bool]:
    return reason.cause is not None and bool(reason.cause.texts), reason.cause is not None
