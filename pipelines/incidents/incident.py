"""An incident: one episode, with its subjects, its window, its words and its lines. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple

from highwater.pipelines.kafka.releases import evaluate_rule
from highwater.pipelines.rules.known_bugs import KNOWN_BUGS, applies
from highwater.pipelines.timelines.rows import Place as Place

Severity = Literal["critical", "major", "minor", "info"]
CRITICAL: Severity = "critical"
MAJOR: Severity = "major"
MINOR: Severity = "minor"
INFO: Severity = "info"

#: Said of an episode that needs a cause and has none.
UNEXPLAINED = "Nothing in the logs explains why."
#: Partitions that are listed by name.
NAMED_MAX = 20
#: Lines that are shown of an incident.
EVIDENCE_MAX = 10
#: Bounds of a column of 32 bits. Subjects without a broker have negative ids.
_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1
#: Largest figure. Kafka logs no number beyond 64 bits.
_FIGURE_MAX = 1 << 63


class Bug(NamedTuple):
    """A known Kafka bug that the lines of an incident match."""

    jira: str  #: such as KAFKA-13091
    fixed_in: str  #: releases that first have the fix; empty where none has


class Remedy(NamedTuple):
    """Advice that changes the system, such as a restart. It is given only while its condition is True."""

    text: str
    #: condition over the facts and the incident, see `pipelines.incidents.advice`: True if the advice is due, False if
    #: it is done or over, None if the logs do not show it
    is_due: Callable[[Any, LoggedIncident], bool | None]
    if_unknown: str = ""  #: text where the logs do not show whether it is due


@dataclass(frozen=True)
class LoggedIncident:
    """One incident as the logs show it."""

    severity: Severity  #: what it means for data and clients; see `schemas.incidents`
    cluster_id: str  #: where it happened
    start_us: int  #: first instant that logs show, microseconds since the epoch
    end_us: int | None  #: last instant; None: it lasts to the end of the logs
    sentence: str  #: what happened, a sentence or two
    #: what to look at now, or a `Remedy`; empty where there is nothing to do
    advice: str | Remedy = ""
    #: what to look at where no other incident brought it about; empty where its sentence says why
    unexplained: str = ""
    broker_ids: tuple[int, ...] = ()  #: brokers that it is about: whom it happened to
    partitions: frozenset[str] = frozenset()  #: all partitions that it is about, such as ``orders-4``
    figures: Mapping[str, float] = field(default_factory=dict)  #: what was counted or measured; units last in the names
    places: tuple[Place, ...] = ()  #: lines that show it
    known_bug: Bug | None = None  #: a bug of the running version with this signature
    #: orders incidents of one severity, the heavier first: partitions times seconds, or what is nearest
    weight: float = 0.0
    #: brokers; one of them caused it, as the lines themselves show (a follower that lags, a peer that cannot
    #: be reached); empty where they do not
    by: tuple[int, ...] = ()
    #: longest wait of a request whose arrival is its start, microseconds: a cause may begin this long after its start
    waited_us: int = 0
    cause_by_us: int | None = None  #: Latest begin of a cause. None: its start, or as `waited_us` allows.
    earliest_us: int | None = None  #: earliest instant at which it can have begun; None: as `start_us`
    lag_us: int | None = None  #: Longest time from the end of a cause to this. None: as for most kinds.
    unseen_us: int = 0  #: It may have lasted this much longer than its lines show, microseconds.
    is_cluster_wide: bool = False  #: it can cause what any broker and partition of its cluster meets
    caused_by: str | None = None  #: the incident that brought it about; `pipelines.incidents.story` fills it
    subject: str = ""  #: rest of its subject, where brokers and partitions do not name all of it
    kind: str = ""  #: name of its `Kind`, which fills it

    def __post_init__(self) -> None:
        # Lists of brokers name those that are known: no line shows the id of some nodes, and no node has some numbers.
        for name in ("broker_ids", "by"):
            ids = getattr(self, name)
            known = tuple(broker_id for broker_id in ids if broker_id is not None and _INT_MIN <= broker_id <= _INT_MAX)
            if len(known) < len(ids):
                object.__setattr__(self, name, known)
        if any(abs(value) > _FIGURE_MAX for value in self.figures.values()):
            figures = {name: value for name, value in self.figures.items() if abs(value) <= _FIGURE_MAX}
            object.__setattr__(self, "figures", figures)

    @property
    def incident_id(self) -> str:
        """Return an id that is stable across runs. It depends on kind, subject and start, but not on the end."""
        key = repr(
            (
                *(self.kind, self.cluster_id, self.start_us),
                *(sorted(self.broker_ids), sorted(self.by), sorted(self.partitions), self.subject),
            )
        )
        return hashlib.md5(key.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()[:12]

    def because_of(self, cause: LoggedIncident) -> LoggedIncident:
        """Return the incident with another incident as its cause."""
        return replace(self, caused_by=cause.incident_id)

    def without_cause(self, candidate: str = "") -> LoggedIncident:
        """Return the incident with advice on what to check, since the logs do not show the cause.

        Args:
            candidate: sentence about the nearest line that may explain it. Empty if there is none.
        """
        if not self.unexplained:
            return self
        return replace(self, sentence=f"{self.sentence} {candidate or UNEXPLAINED}", advice=self.unexplained)


_BY_JIRA = {bug.jira: bug for bug in KNOWN_BUGS}


def bug_of(jira: str, version: str | None) -> Bug | None:
    """Return a bug with the releases that first contain its fix. None if `version` does not have the bug.

    Args:
        jira: number of the bug, such as KAFKA-3410.
        version: release as logged. None if unknown: the bug is then returned.

    Raises:
        KeyError: the table does not contain the bug.
    """
    bug = _BY_JIRA[jira]
    if version is not None and evaluate_rule(version, partial(applies, bug)) is False:
        return None
    return Bug(jira, releases_of(jira))


def releases_of(jira: str) -> str:
    """Return the releases that first contain a bug's fix, such as ``2.0.1 and 2.1.0``. Empty for an unknown bug."""
    bug = _BY_JIRA.get(jira)
    return "" if bug is None else " and ".join(".".join(map(str, fixed)) for fixed in bug.fixed_in)
