"""The timeline of controllers: who was active, and when none was, with the bounds of each change. Pure.

A change has two bounds: the last time at which the previous state is certain, and the first time at which the new state
is certain. Only actions of an active controller show that a node was active. A node's own lines, the end of its
process, a majority of the voters or its peers show that it no longer was.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from highwater.pipelines.timelines.rows import Node, Place, Row, Rows, place
from highwater.pipelines.timelines.terms import ControllerTerm, has_no_leader, terms

#: A peer that cannot reach a node tries again at least this often, microseconds.
_STILL_MISSED_US = 15_000_000


class Away(NamedTuple):
    """A time in which a node could not act: its process had ended, was shut down or did not run. In us."""

    node: Node
    since_us: int  #: First instant of it.
    until_us: int | None  #: None: to the end of the logs.
    reason: str  #: ``shutdown``, ``died`` or ``froze``.


class ControllerState(NamedTuple):
    """A time with one active controller, or without one. In us."""

    controller: int | None  #: None if no controller was active.
    epoch: int | None  #: None if unknown.
    begin_after_us: int | None  #: None: before the logs.
    begin_by_us: int
    end_after_us: int | None  #: None: to the end of the logs.
    end_by_us: int | None  #: None: to the end of the logs.
    reason: str  #: See `schemas.controllers.CONTROLLER_TIMELINE`.
    place: Place | None  #: First line that shows it. None if no line alone does.


@dataclass(frozen=True)
class ControllerEvidence:
    """Rows that show who was active."""

    events: Rows  #: `silver.controller_events` of no partition, in order of time.
    away: Sequence[Away]
    with_lines: Collection[Node]  #: Nodes with lines of their own.
    #: When peers could not reach a node: first and last instants, by node.
    missed: Mapping[Node, Sequence[tuple[int, int]]] = field(default_factory=dict)
    #: Voters of each quorum, as configured. A cluster without an entry has those that log who leads.
    voters: Mapping[str, frozenset[int]] = field(default_factory=dict)


class _End(NamedTuple):
    after_us: int  #: The controller was active for certain.
    by_us: int | None  #: It no longer was. None if nothing shows that before the next election.
    reason: str
    place: Place | None


def controller_states(evidence: ControllerEvidence) -> dict[str, list[ControllerState]]:
    """Return the states of each cluster, in order."""
    in_order = terms(evidence.events, evidence.with_lines)
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in evidence.events:
        rows[row["cluster_id"]].append(row)
    return {cluster_id: [*_Quorum(evidence, cluster_id, rows[cluster_id]).states(in_order)] for cluster_id in rows}


class _Quorum:
    """Derives the controller states of one cluster."""

    def __init__(self, evidence: ControllerEvidence, cluster_id: str, rows: Sequence[Row]) -> None:
        self._evidence, self._cluster_id, self._rows = evidence, cluster_id, rows
        logged = {row["broker_id"] for row in rows if has_no_leader(row) or row["event"] == "controller_elected"}
        voters = evidence.voters.get(cluster_id)
        # If the number of voters is unknown, one voter is not a majority.
        self._majority = len(voters) // 2 + 1 if voters else max(len(logged) // 2 + 1, 2)
        self._voters = voters or frozenset(logged)

    def states(self, in_order: Mapping[str, Sequence[ControllerTerm]]) -> Iterator[ControllerState]:
        """Yield the states, in order."""
        of_cluster = in_order.get(self._cluster_id, ())
        after_us, reason = None, "first_shown"
        first_us = of_cluster[0].elected_us if of_cluster else None
        missing_us = self._majority_without(None, first_us)
        if missing_us is not None:
            yield ControllerState(None, None, None, missing_us, first_us, first_us, "no_leader", None)
            after_us, reason = first_us, "elected"
        for term, following in pairwise([*of_cluster, None]):
            if term is None:
                continue
            until_us = None if following is None else following.elected_us
            end = self._end(term, until_us)
            # Without a line that shows its end, a term may last to the next election.
            end_by_us = until_us if end.by_us is None else end.by_us
            end_after_us = None if end_by_us is None else end.after_us
            of_term = term.controller, term.epoch, after_us, term.elected_us, end_after_us, end_by_us
            yield ControllerState(*of_term, reason, term.place)
            after_us, reason = end.after_us, "elected"
            # Without a further election, only a majority shows that none followed: logs may be missing.
            is_shown = until_us is not None or self._majority_without(end.after_us, None) is not None
            if end.by_us is not None and is_shown and (until_us is None or end.by_us < until_us):
                yield ControllerState(
                    *(None, None, end.after_us, end.by_us, until_us, until_us), reason=end.reason, place=end.place
                )
                after_us = until_us

    def _end(self, term: ControllerTerm, until_us: int | None) -> _End:
        """Return when a controller's term ended, shown by itself, by a majority of the voters, or by its peers.

        Args:
            until_us: time of the next election. None if unknown.
        """
        of_node = self._cluster_id, term.controller
        since_us = self._last_act(term, until_us)
        own = [
            _End(since_us, row["time"], _reason(row), place(row))
            for row in self._rows
            if _is_between(row["time"], since_us, until_us) and _is_own_end(row, term.controller)
        ]
        # A term ends with its process: actions of the next process do not belong to this term.
        own += [
            _End(min(since_us, away.since_us), away.since_us, away.reason, None)
            for away in self._evidence.away
            if away.node == of_node
            and _is_between(away.since_us, since_us if away.reason == "froze" else term.elected_us + 1, until_us)
            and (away.reason != "froze" or away.until_us is None or until_us is None or away.until_us >= until_us)
        ]
        seen_us = self._majority_without(since_us, until_us)
        seen = [] if seen_us is None else [_End(since_us, seen_us, "no_leader", None)]
        if own or seen:
            return min([*own, *seen], key=lambda end: end.by_us or 0)
        firsts = [
            first
            for first, last in self._evidence.missed.get(of_node, ())
            if until_us is not None and since_us <= first <= until_us <= last + _STILL_MISSED_US
        ]
        if firsts and of_node not in self._evidence.with_lines:
            return _End(since_us, min(firsts), "unreachable", None)
        return _End(since_us, None, "replaced", None)

    def _last_act(self, term: ControllerTerm, until_us: int | None) -> int:
        """Return when a term's last action was that only the active controller takes, us."""
        return max(
            (
                row["time"]
                for row in self._rows
                if row["broker_id"] == term.controller
                and row["time"] >= term.elected_us
                and (until_us is None or row["time"] < until_us)
                and row["event"] not in ("controller_resigned", "other")
            ),
            default=term.elected_us,
        )

    def _majority_without(self, since_us: int | None, until_us: int | None) -> int | None:
        """Return when a majority of voters had logged an epoch without a leader, us. None if none did.

        A disconnected node logs the same while the other voters still have their leader.
        """
        firsts: dict[int, int] = {}
        for row in self._rows:
            is_voter = has_no_leader(row) and row["broker_id"] in self._voters
            if is_voter and _is_between(row["time"], since_us or 0, until_us):
                firsts.setdefault(row["broker_id"], row["time"])
        return sorted(firsts.values())[self._majority - 1] if len(firsts) >= self._majority else None


def _is_own_end(row: Row, controller: int) -> bool:
    has_resigned = row["event"] == "controller_resigned" and row["subject_broker_id"] == controller
    return has_resigned or (row["broker_id"] == controller and has_no_leader(row))


def _reason(row: Row) -> str:
    return "resigned" if row["event"] == "controller_resigned" else "no_leader"


def _is_between(time_us: int, since_us: int, until_us: int | None) -> bool:
    return since_us <= time_us and (until_us is None or time_us <= until_us)


def rows_of(states: Mapping[str, Sequence[ControllerState]]) -> Iterable[dict[str, Any]]:
    """Yield rows of `gold.controller_timeline`."""
    for cluster_id, of_cluster in states.items():
        for position, state in enumerate(of_cluster):
            at = state.place
            yield {
                "cluster_id": cluster_id,
                "position": position,
                "controller": state.controller,
                "controller_epoch": state.epoch,
                "begin_after_time": state.begin_after_us,
                "begin_by_time": state.begin_by_us,
                "end_after_time": state.end_after_us,
                "end_by_time": state.end_by_us,
                "reason": state.reason,
                "file_id": None if at is None else at.file_id,
                "byte_offset": None if at is None else at.byte_offset,
            }
