"""The timeline of each node: states of its process with the bounds of each change, from all witnesses. Pure.

A witness is a line of any node that shows a state. A change has two bounds: the last time at which the previous state
is certain, and the first time at which the new state is certain. Only a node's own lines, or the exit of its container,
show that its process died or lived. Lines of other nodes show only that it did not answer: its state is then `silent`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

from highwater.pipelines.timelines.missed import (
    CLOCKS_US,
    Loss,
    Missed,
    Witness,
    expired_sessions,
    first_missed,
    merged,
    removals,
    replacements,
)
from highwater.pipelines.timelines.processes import BOOT_US, SILENCE_US, OwnLines, Process, is_steady, processes
from highwater.pipelines.timelines.rows import Node, Place, Row, Rows, node, place
from highwater.pipelines.timelines.terms import has_no_leader, terms

State = Literal["unknown", "starting", "up", "silent", "stopping", "down"]
#: States in which a node does not answer.
_GONE: tuple[State, ...] = ("silent", "stopping", "down")
#: Share of the time after a silence in which a broker writes. Others may lead for it then: it has less to write.
_AGAIN_SHARE = 0.35
#: Share of a time for which the others are silent too, if the cluster had nothing to do.
_SILENT_SHARE = 0.8
#: A broker that froze notices within this that its session has expired, microseconds.
_NOTICED_US = 5_000_000
#: Time after a silence that is looked at, and the least of it that shows how steadily a broker writes, microseconds.
_AFTER_US, _AFTER_MIN_US = 10_000_000, 3_000_000
#: A session ends this long after the last sign of its node at least, if its timeout is unknown, microseconds: two
#: thirds of zookeeper.session.timeout.ms up to 2.4.
_SESSION_US = 4_000_000
#: Others elect a controller this long after the last sign of the one before at least, microseconds.
_ELECTION_US = 1_000_000
#: Clocks of a log and of the program that watches its process differ by this at most, microseconds.
_EXIT_US = 2_000_000
#: Seconds with a line, of the ten up to the last line, of a node that writes steadily.
STEADY_SECONDS = 9
#: Other nodes write for this long at least after the lines of a node end early, microseconds.
_CONTINUES_US = 10_000_000
#: A node that missed its peers within this before a silence may be cut off, microseconds.
_CUT_US = 10_000_000
#: Longest silence of a node that seldom writes that can be a freeze, microseconds.
_FROZEN_MAX_US = 120_000_000
#: A voter that is gone is replaced as controller at most this long before it is fenced as a broker, microseconds.
_FENCED_US = 10_000_000
#: Brokers that stop within this of each other and do not come back stop together, microseconds.
_TOGETHER_US = 120_000_000


@dataclass(frozen=True)
class Evidence:
    """Rows from all logs about node processes."""

    lifecycle: Rows = ()  #: `silver.broker_lifecycle`, in order of time.
    controller_events: Rows = ()  #: `silver.controller_events` without what nodes read as they start.
    silences: Rows = ()  #: As `pipelines.incidents.facts.Facts.silences`.
    last_lines: Rows = ()  #: As `pipelines.incidents.facts.Facts.last_lines`.
    first_boots: Mapping[Node, int] = field(default_factory=dict)
    own_lines: Mapping[Node, OwnLines] = field(default_factory=dict)
    losses: Mapping[Node, Sequence[Loss]] = field(default_factory=dict)
    own_losses: Mapping[Node, Sequence[Loss]] = field(default_factory=dict)  #: Of peers, by the node that missed them.
    exits: Rows = ()  #: As `pipelines.incidents.facts.Facts.exits`.
    controllers: frozenset[Node] = frozenset()  #: Nodes that are controllers only.
    ends: Mapping[str, int] = field(default_factory=dict)  #: Last instant of the logs of each cluster.
    #: Time for which nothing came from a node before others acted, at least, microseconds. 0 if unknown.
    #: Args: reason of `Missed`, or replaced; cluster.
    silent_us: Callable[[str, str], int] = lambda reason, cluster_id: 0


class BrokerState(NamedTuple):
    """One state of a node. Times in us."""

    state: State
    after_us: int | None  #: Last instant at which the state before held for certain. None: before the logs.
    by_us: int | None  #: First instant at which this state is certain. None: before the logs.
    reason: str  #: Why it began; see `schemas.timelines`.
    shown: tuple[Witness, ...] = ()
    end_after_us: int | None = None  #: As `after_us`, of the next state. None: to the end of the logs.
    end_by_us: int | None = None  #: As `by_us`, of the next state. None: to the end of the logs.

    @property
    def start_us(self) -> int:
        """Return the start, microseconds since the epoch.

        The start is the later bound. It is the earlier bound if both are near, or if no line dates the start.
        """
        after = self.by_us if self.after_us is None else self.after_us
        by = after if self.by_us is None else self.by_us
        return 0 if after is None or by is None else by if self.is_dated and not self.is_exact else after

    @property
    def is_dated(self) -> bool:
        """Return True if a line shows the state before the next state begins."""
        return self.by_us is not None and self.by_us != self.end_by_us

    @property
    def is_exact(self) -> bool:
        """Return True if the bounds of the start are less than the shortest silence apart."""
        return self.after_us is not None and self.by_us is not None and self.by_us - self.after_us <= SILENCE_US

    @property
    def witnesses(self) -> tuple[str, ...]:
        """Return the sources of the lines that show the start."""
        return tuple(sorted({witness.source for witness in self.shown}))

    def witness(self, *sources: str) -> Witness | None:
        """Return the first witness of the start from these sources. None if there is none."""
        found = [witness for witness in self.shown if witness.source in sources]
        return min(found, key=lambda witness: witness.time_us, default=None)


class Away(NamedTuple):
    """A time in which a node was stopped, dead, or did not answer."""

    node: Node
    state: BrokerState  #: down or silent; stopping if the logs end with it; unknown if its lines end early
    stopping: BrokerState | None  #: The state before, if the process was shutting down.
    boot_us: int | None  #: First line of the next process. None if unknown.
    up_us: int | None  #: Up again. None if no line shows it.
    has_lines: bool  #: The node has lines of its own here.
    loads: str = ""  #: As `Process.loads`, of the next process.
    is_again: bool = False  #: The next process ended, too, before it was up.

    @property
    def until_us(self) -> int | None:
        """Return the end, microseconds: the node was up, or a process began that ended as well. None if unknown."""
        return self.boot_us if self.up_us is None and self.is_again else self.up_us

    @property
    def start_us(self) -> int:
        """Return the start, microseconds. For an orderly stop, return when the process began to stop."""
        is_orderly = self.state.reason == "shutdown" and self.stopping is not None
        return self.stopping.start_us if is_orderly and self.stopping is not None else self.state.start_us


class BrokerTimelines:
    """The timelines of all nodes."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self.terms = terms(evidence.controller_events, {node(row) for row in evidence.last_lines})
        self._processes = processes(evidence.lifecycle, evidence.silences, evidence.first_boots, evidence.own_lines)
        with_lines = {node(row) for row in (*evidence.last_lines, *evidence.controller_events)}
        removed = removals(evidence.controller_events, self.terms, with_lines)
        gone = [span for span in removed if span.reason != "shutdown"]
        self._missed = merged([*gone, *expired_sessions(evidence.lifecycle)])
        self._granted = merged([span for span in removed if span.reason == "shutdown"])
        self._leaderless: dict[str, list[Row]] = defaultdict(list)
        for row in evidence.controller_events:
            if has_no_leader(row) and row.get("controller_epoch") is not None:
                self._leaderless[row["cluster_id"]].append(row)
        self._replaced: dict[Node, list[Witness]] = defaultdict(list)
        for of_node, witness in replacements(self.terms, evidence.controller_events):
            self._replaced[of_node].append(witness)
        self._last = {node(row): row for row in evidence.last_lines}
        self._silences: dict[Node, list[Row]] = defaultdict(list)
        for row in evidence.silences:
            self._silences[node(row)].append(row)
        nodes = {*self._processes, *self._missed, *self._granted}
        self.states = {of_node: self._states(of_node) for of_node in sorted(nodes)}

    # ---------------------------------------------------------------- states of one node

    def _states(self, of_node: Node) -> tuple[BrokerState, ...]:
        begun = self._processes.get(of_node, [])
        open_spans = [*self._missed.get(of_node, ())]
        states: list[BrokerState] = []
        if not begun:
            states.append(BrokerState("unknown", None, None, "no_logs"))
            states += self._before_lines(of_node, open_spans, None)
        elif begun[0].begin_us is not None:
            early = [span for span in open_spans if span.time_us < begun[0].begin_us + CLOCKS_US]
            of_others = self._before_lines(of_node, early, begun[0])
            if of_others:
                states.append(BrokerState("unknown", None, None, "logs_begin"))
                states += of_others
                open_spans = [span for span in open_spans if span not in early]
        for number, process in enumerate(begun):
            after = begun[number + 1] if number + 1 < len(begun) else None
            states += self._of_process(of_node, process, after, open_spans)
        ordered = sorted(states, key=lambda state: (state.by_us is not None, state.by_us or 0))
        for number, (before, state) in enumerate(pairwise(ordered), 1):
            if before.by_us is not None and (state.after_us is None or state.after_us < before.by_us):
                ordered[number] = state._replace(after_us=before.by_us)
        return tuple(
            state._replace(end_after_us=later.after_us, end_by_us=later.by_us)
            for state, later in pairwise([*ordered, BrokerState("unknown", None, None, "")])
        )

    def _before_lines(self, of_node: Node, spans: Sequence[Missed], first: Process | None) -> list[BrokerState]:
        """Return the states of a node before its own lines, as other nodes show them.

        Args:
            spans: times in which others missed the node.
            first: the first process in the node's lines. None if it has no lines.
        """
        until = None if first is None else first.begin_us
        states = []
        for span in self._granted.get(of_node, ()):
            if until is None or span.time_us < until:
                states.append(BrokerState("down", None, span.time_us, "shutdown", span.shown))
                states += _returned(span, until, "unknown")
        for span in spans:
            silent = self._silent(of_node, span, until, "unknown")
            if first is not None and first.loads == "unclean" and len(silent) == 1:
                # The first process here finds that the one before ended without a shutdown.
                silent = [silent[0]._replace(state="down", reason="died")]
            states += silent
        return states

    def _of_process(
        self, of_node: Node, process: Process, after: Process | None, missed: Sequence[Missed]
    ) -> list[BrokerState]:
        states = []
        begin = process.begin_us
        if begin is None:
            states.append(BrokerState("up", None, None, "logs_begin"))
        else:
            shown = () if process.starting is None else (_own(process.starting),)
            states.append(
                BrokerState("starting", process.before_us, begin, "booted", shown or (Witness("own", begin),))
            )
        if process.started is not None and begin is not None:
            time = process.started["time"]
            states.append(BrokerState("up", time, time, "started", (_own(process.started),)))
        elif begin is not None:
            until_us = None if after is None else after.before_us
            returned = [
                span.back_us
                for span in missed
                if span.time_us < begin + CLOCKS_US
                and span.back_us is not None
                and begin <= span.back_us
                and (until_us is None or span.back_us <= until_us)
            ]
            states += [BrokerState("up", time, time, "returned", (Witness("controller", time),)) for time in returned]
        end = self._end(of_node, process, after, missed)
        # What others noticed of its end is not a separate span.
        ends = [state.start_us for state in end if state.state in ("down", "stopping")]
        until = min(ends, default=None)
        states += self._silences_within(of_node, process, until, missed, after)
        return states + end

    def _end(
        self, of_node: Node, process: Process, after: Process | None, missed: Sequence[Missed]
    ) -> list[BrokerState]:
        states = []
        orderly = "shutdown"
        if process.stopping is not None:
            time = process.stopping["time"]
            orderly = "halted" if process.has_halted(time) else orderly
            states.append(BrokerState("stopping", time, time, orderly, (_own(process.stopping),)))
        since = (process.begin_us or 0) if process.stopping is None else process.stopping["time"]
        if process.stopped is not None:
            time = process.stopped["time"]
            return [*states, BrokerState("down", time, time, orderly, (_own(process.stopped),))]
        if after is None:
            return states + self._last_end(of_node, process, since, missed)
        last, boot = after.before_us, after.begin_us
        if last is None or boot is None:
            return states
        until = after.up_us or boot + BOOT_US
        noticed = [span for span in missed if last - CLOCKS_US <= span.time_us <= until]
        shown = [witness for span in noticed for witness in span.shown]
        exits = [row for row in self._evidence.exits if node(row) == of_node and last - _EXIT_US <= row["time"] <= boot]
        shown += [_exit(row) for row in exits[:1]]
        shown += [witness for witness in self._replaced[of_node] if last < witness.time_us <= boot]
        losses = self._evidence.losses.get(of_node, ())
        peers = first_missed(losses, [witness.time_us for witness in shown], last, boot)
        shown += [] if peers is None or peers.place is None else [peers]
        bounds = [boot, *(max(last, self._since(span)) for span in noticed)]
        bounds += [witness.time_us for witness in shown if witness.time_us > last]
        by = min([*bounds, last + SILENCE_US]) if after.is_exact else min(bounds)
        if process.has_halted(last):
            reason = "halted"
        elif after.loads == "clean" and process.has_run:
            reason = "shutdown"
        else:
            own = self._evidence.own_lines.get(of_node)
            is_shown = own is None or not own.is_excerpt or after.loads == "unclean" or exits
            reason = "died" if is_shown else "ended"
        return [*states, BrokerState("down", last, by, reason, tuple(shown))]

    def _last_end(self, of_node: Node, process: Process, since: int, missed: Sequence[Missed]) -> list[BrokerState]:
        """Return the end of a node's last process: an exit, or a controller that misses the node."""
        last_us = self._last_us(of_node)
        exits = [row for row in self._evidence.exits if node(row) == of_node and row["time"] >= since]
        if exits and last_us is not None and exits[-1]["time"] >= last_us - _EXIT_US:
            by = max(exits[-1]["time"], last_us)
            reason = "shutdown" if process.stopping is not None else "died"
            return [BrokerState("down", last_us, by, reason, (_exit(exits[-1]),))]
        if process.stopping is not None:
            gone = [span for span in missed if span.time_us > since]
            if gone:
                return [BrokerState("down", last_us, gone[0].time_us, "shutdown", gone[0].shown)]
            return []
        return []

    def _silences_within(
        self,
        of_node: Node,
        process: Process,
        until: int | None,
        missed: Sequence[Missed],
        after: Process | None,
    ) -> list[BrokerState]:
        """Return the times in which a process did not answer, or logged less than usual."""
        states: list[BrokerState] = []
        begin = process.begin_us or 0
        settled = process.up_us or (begin + BOOT_US if begin else 0)
        spans = [
            span
            for span in missed
            if span.time_us > (settled if begin else 0)
            and (until is None or span.time_us < until - CLOCKS_US)
            and (after is None or span.time_us < (after.begin_us or 0))
        ]
        # Without lines about starts, another process may have written the lines after a silence.
        is_whole = self.shows_starts(of_node)
        gaps = self._frozen(of_node, process, until, after) if is_whole else []
        for span in spans:
            gap = self._gap_of(of_node, span)
            is_new = gap is not None and gap not in gaps and self._can_be_frozen(of_node, gap)
            if is_whole and gap is not None and is_new and self._is_within(gap, process, until, after):
                gaps.append(gap)
        for row in gaps:
            spans_here = [span for span in spans if self._gap_of(of_node, span) is row]
            spans = [span for span in spans if span not in spans_here]
            states += self._froze(of_node, row, spans_here)
        for span in spans:
            states += self._silent(of_node, span, None, "up")
        is_gone = bool(states) and states[-1].state == "silent"
        if after is None and until is None and not is_gone:
            states += self._ends_early(of_node)
        return states

    def _gap_of(self, of_node: Node, span: Missed) -> Row | None:
        """Return the silence of a node in which `span` begins. None if there is none."""
        is_session = span.reason == "session_expired"
        for row in self._silences[of_node]:
            if is_session and not is_steady(row) and self._expires_with_others(span):
                continue
            late = _NOTICED_US if is_session else 0
            silent_us = (self._silent_us(span) or _SESSION_US) - CLOCKS_US
            if not row["is_boot"] and row["start_time"] + max(silent_us, 0) < span.time_us <= row["end_time"] + late:
                is_back = span.back_us is None or row["end_time"] <= span.back_us + _NOTICED_US
                if is_back:
                    return row
        return None

    def _expires_with_others(self, span: Missed) -> bool:
        """Return True if sessions of other nodes expired at that time: ZooKeeper was away, and no node froze."""
        return any(
            other.reason == span.reason
            and other.node[0] == span.node[0]
            and other.node != span.node
            and abs(other.time_us - span.time_us) <= _NOTICED_US
            for spans in self._missed.values()
            for other in spans
        )

    def _is_within(self, row: Row, process: Process, until: int | None, after: Process | None) -> bool:
        start, end = row["start_time"], row["end_time"]
        limit = until if after is None else min(until or after.begin_us or 0, after.begin_us or 0)
        return bool(
            not row["is_boot"]
            and start > process.settled_us
            and start >= (process.begin_us or 0)
            and (limit is None or end + 1_000_000 < limit)
        )

    def _frozen(self, of_node: Node, process: Process, until: int | None, after: Process | None) -> list[Row]:
        """Return silences in which a process froze, as its usual logging rate or its lost controllership shows."""
        found = []
        for row in self._silences[of_node]:
            if not self._is_within(row, process, until, after):
                continue
            # A broker that others lead for, and a controller that is not active, have nothing to write.
            is_idle = row["moved_before"] or of_node in self._evidence.controllers or self._are_all_silent(row)
            is_replaced = bool(self._replaced_in(of_node, row)) and self._can_be_frozen(of_node, row)
            # A voter that is cut off from a dead leader and the others logs its own candidacy.
            is_replaced = is_replaced or bool(self._unanswered_in(of_node, row))
            again = is_steady(row) and not is_idle and self._writes_again(row, until)
            if is_replaced or again or (is_steady(row) and self._is_missed_in(of_node, row)):
                found.append(row)
        return found

    def _can_be_frozen(self, of_node: Node, row: Row) -> bool:
        """Return True if a silence of a node that others missed may mean that its process froze.

        A node that seldom writes is often silent for minutes. A node that missed its peers before may be disconnected.
        """
        start, end = row["start_time"], row["end_time"]
        lost = self._evidence.own_losses.get(of_node, ())
        is_cut_off = any(loss.first_us <= start <= loss.last_us + _CUT_US for loss in lost)
        return is_steady(row) or (end - start <= _FROZEN_MAX_US and not is_cut_off)

    def _replaced_in(self, of_node: Node, row: Row) -> list[Witness]:
        silent_us = max(self._evidence.silent_us("replaced", of_node[0]), _ELECTION_US)
        return [
            witness
            for witness in self._replaced[of_node]
            if row["start_time"] + silent_us <= witness.time_us <= row["end_time"]
        ]

    def _unanswered_in(self, of_node: Node, row: Row) -> list[Witness]:
        """Return the first leaderless controller epoch during a silence, if the node learned of it only afterwards.

        A voter logs each epoch at once if the leader of the previous epoch is dead.
        """
        start, end = row["start_time"], row["end_time"]
        of_cluster = self._leaderless[of_node[0]]
        later = [
            vote["controller_epoch"]
            for vote in of_cluster
            if vote["broker_id"] == of_node[1] and end <= vote["time"] <= end + _NOTICED_US
        ]
        for vote in of_cluster:
            is_within = start < vote["time"] <= end - SILENCE_US and vote["broker_id"] != of_node[1]
            if is_within and vote["controller_epoch"] <= max(later, default=-1) and self._is_leader_dead(vote):
                return [Witness("peers", vote["time"], place(vote), "election")]
        return []

    def _is_leader_dead(self, vote: Row) -> bool:
        """Return True if the lines of the last controller show that its process had ended at the time of the vote."""
        before = [term for term in self.terms.get(vote["cluster_id"], ()) if term.elected_us <= vote["time"]]
        begun = self._processes.get((vote["cluster_id"], before[-1].controller), ()) if before else ()
        return any(
            process.before_us is not None and process.before_us <= vote["time"] <= (process.begin_us or 0)
            for process in begun
        )

    def _is_missed_in(self, of_node: Node, row: Row) -> bool:
        return any(self._gap_of(of_node, span) is row for span in self._missed.get(of_node, ()))

    def _are_all_silent(self, row: Row) -> bool:
        """Return True if the other brokers logged almost nothing during the silence: the cluster was idle."""
        start, end = row["start_time"], row["end_time"]
        own = self._evidence.own_lines
        others = {
            other
            for other, last in self._last.items()
            if other[0] == row["cluster_id"] and last["last_time"] >= end
            if other not in own or own[other].first_us <= start
        } - {node(row), *self._evidence.controllers}
        silent_us: dict[Node, int] = dict.fromkeys(others, 0)
        for other in others:
            for gap in self._silences[other]:
                silent_us[other] += max(0, min(end, gap["end_time"]) - max(start, gap["start_time"]))
        return bool(others) and all(time_us >= _SILENT_SHARE * (end - start) for time_us in silent_us.values())

    def _writes_again(self, row: Row, until: int | None) -> bool:
        """Return True if a broker logs at its usual rate after a silence, while others still need it."""
        ends = [self._evidence.ends.get(row["cluster_id"], 0), *([] if until is None else [until])]
        after_us = min(_AFTER_US, min(ends) - row["end_time"])
        return bool(after_us >= _AFTER_MIN_US and row["written_after_us"] >= _AGAIN_SHARE * after_us)

    def _froze(self, of_node: Node, row: Row, spans: Sequence[Missed]) -> list[BrokerState]:
        """Return the state of a frozen process, and the next state."""
        start, end = row["start_time"], row["end_time"]
        replaced = self._replaced_in(of_node, row)
        unanswered = self._unanswered_in(of_node, row)
        shown = [witness for span in spans for witness in span.shown] + replaced + unanswered
        if is_steady(row):
            by = start + SILENCE_US
            shown.append(Witness("own", start))
        else:
            peers = first_missed(self._evidence.losses.get(of_node, ()), [w.time_us for w in shown], start, end)
            shown += [] if peers is None or peers.place is None else [peers]
            reason = "removed" if any(span.reason != "fenced" for span in spans) else "replaced"
            silent_us = self._evidence.silent_us(reason, of_node[0])
            bounds = [min(self._since(span), end - self._silent_us(span)) for span in spans] + [
                witness.time_us - silent_us for witness in replaced
            ]
            by = max(start, min(bounds + [witness.time_us for witness in shown]))
        frozen = BrokerState("silent", start, min(by, end), "froze", tuple(shown))
        return [frozen, BrokerState("up", end, end, "returned", (Witness("own", end),))]

    def _since(self, span: Missed) -> int:
        """Return the latest time since when a node was missing, us. Others react after some time without contact."""
        removed = [witness.time_us for witness in span.shown if witness.source == "controller"]
        return min(removed) - self._silent_us(span) if removed else span.time_us

    def _silent_us(self, span: Missed) -> int:
        """Return for how long at least a node was silent before its session ended, microseconds. 0 if unknown."""
        reason = "fenced" if span.reason == "fenced" else "removed"
        return self._evidence.silent_us(reason, span.node[0])

    def _silent(self, of_node: Node, span: Missed, until: int | None, next_state: State) -> list[BrokerState]:
        """Return the state of a node that others missed, and the next state.

        Args:
            until: first line of the node's first process after the span. None without one.
            next_state: state of the node afterwards.
        """
        since = self._since(span)
        own = self._evidence.own_lines.get(of_node)
        last = None if own is None else own.last_us
        after: int | None = None
        if last is not None and last < span.time_us + CLOCKS_US:
            after = last
        shown = [*span.shown]
        losses = self._evidence.losses.get(of_node, ())
        earliest = after if after is not None else span.time_us - 30_000_000
        peers = first_missed(losses, [span.time_us], earliest, span.time_us)
        shown += [] if peers is None or peers.place is None else [peers]
        # A controller whose session ended was replaced once since it registered.
        registered = [row["time"] for row in self._evidence.lifecycle if _is_registered(row, of_node, span.time_us)]
        backs = [each.back_us for each in self._missed[of_node] if each.back_us is not None]
        since_us = max([0, *registered, *(back for back in backs if back <= span.time_us)])
        if span.reason == "fenced":  # The peers of a KRaft voter elect another one sooner than its session ends.
            since_us = max(since_us, span.time_us - _FENCED_US)
        replaced = [witness for witness in self._replaced[of_node] if since_us < witness.time_us <= span.time_us]
        shown += [each._replace(source="peers") if span.reason == "fenced" else each for each in replaced]
        by = min([since, *(witness.time_us for witness in shown)])
        if after is not None:
            by = max(by, after)
        states = [BrokerState("silent", after, by, span.reason, tuple(shown))]
        return states + _returned(span, until, next_state)

    def _ends_early(self, of_node: Node) -> list[BrokerState]:
        """Return an unknown state after the last line of a steadily logging node, if other nodes log longer."""
        row = self._last.get(of_node)
        own = self._evidence.own_lines.get(of_node)
        if row is None or (own is not None and own.is_excerpt):
            return []
        last = row["last_time"]
        missing_us = self._evidence.ends.get(of_node[0], 0) - last
        longest = max((gap["end_time"] - gap["start_time"] for gap in self._silences[of_node]), default=0)
        if row["seconds_before"] < STEADY_SECONDS or missing_us <= max(_CONTINUES_US, longest):
            return []
        return [BrokerState("unknown", last, last + SILENCE_US, "logs_end", (Witness("own", last, place(row)),))]

    def _last_us(self, of_node: Node) -> int | None:
        row = self._last.get(of_node)
        own = self._evidence.own_lines.get(of_node)
        return row["last_time"] if row is not None else None if own is None else own.last_us

    # ---------------------------------------------------------------- readings

    @cached_property
    def aways(self) -> list[Away]:
        """Return the times in which nodes were away, in order."""
        found = []
        for of_node, states in self.states.items():
            for number, state in enumerate(states):
                is_last_stop = state.state == "stopping" and number + 1 == len(states)
                is_gone = state.state in ("down", "silent") or state.reason == "logs_end"
                if is_last_stop or is_gone:
                    found.append(self._away(of_node, states, number))
        return sorted(found, key=lambda away: (away.node[0], away.start_us, away.node[1]))

    def _away(self, of_node: Node, states: Sequence[BrokerState], number: int) -> Away:
        state, later = states[number], states[number + 1 :]
        before = states[number - 1] if number else None
        stopping = state if state.state == "stopping" else before if before and before.state == "stopping" else None
        boot = up = None
        is_again = False
        for each in later:
            if each.state == "down" or (each.state == "silent" and up is None and state.state == "silent"):
                is_again = each.state == "down"
                break
            if each.state == "starting" and boot is None:
                boot = each.by_us
            if each.state in ("up", "unknown") and each.reason in ("started", "returned"):
                up = each.by_us
                break
        begun = [process for process in self._processes.get(of_node, ()) if process.begin_us == boot]
        loads = begun[0].loads if begun and boot is not None else ""
        return Away(of_node, state, stopping, boot, up, of_node in self._processes, loads, is_again)

    def has_lived(self, away: Away) -> bool:
        """Return True if the process wrote lines after other nodes missed it, or after its session had expired."""
        witness = away.state.witness("controller", "session")
        last = self._last_us(away.node)
        is_later = witness is not None and last is not None and last > witness.time_us + CLOCKS_US
        return is_later and away.boot_us is None and self.shows_starts(away.node)

    def shows_starts(self, of_node: Node) -> bool:
        """Return True if a node's lines show every start of a process since an earlier process."""
        own = self._evidence.own_lines.get(of_node)
        return own is None or own.shows_starts

    def last_line(self, away: Away) -> int | None:
        """Return the time of a node's last line before it was away. None if the logs have no line before."""
        last = self._last_us(away.node)
        if last is None:
            return None
        return last if away.boot_us is None and last <= away.start_us + SILENCE_US else away.state.after_us

    def is_gone_since(self, of_node: Node, time_us: int) -> bool:
        """Return True if a node is away at the end of the logs, and was never up since `time_us`."""
        states = [
            state for state in self.states.get(of_node, ()) if state.end_by_us is None or state.end_by_us > time_us
        ]
        return bool(states) and all(state.state in _GONE or state.reason == "logs_end" for state in states)

    def shown_until(self, of_node: Node, since_us: int) -> int | None:
        """Return the time, from `since_us` on, up to which a node's own lines show its state. None for the log end."""
        own = self._evidence.own_lines.get(of_node)
        if own is None or own.is_excerpt:
            return since_us
        ends = [
            state.start_us
            for state in self.states.get(of_node, ())
            if state.start_us > since_us and (state.state in _GONE or state.reason == "logs_end")
        ]
        return min(ends, default=None)

    @cached_property
    def stops(self) -> list[Away]:
        """Return orderly ends, in order of time."""
        return [away for away in self.aways if away.state.reason == "shutdown"]

    @cached_property
    def shutdowns(self) -> dict[str, list[Away]]:
        """Return by cluster the orderly stops of all brokers with which its logs end."""
        last: dict[str, dict[Node, Away]] = defaultdict(dict)
        for away in self.stops:
            if away.boot_us is None and away.up_us is None:
                last[away.node[0]][away.node] = away
        whole = {}
        for cluster_id, of_cluster in last.items():
            ends = sorted(of_cluster.values(), key=lambda away: away.start_us)
            is_all = {of_node for of_node in self._last if of_node[0] == cluster_id} <= of_cluster.keys()
            if is_all and ends[-1].start_us - ends[0].start_us <= _TOGETHER_US:
                whole[cluster_id] = ends
        return whole

    @cached_property
    def shutdown_times(self) -> dict[str, int]:
        """Return by cluster when the first of the `shutdowns` began, us since the epoch."""
        return {cluster_id: ends[0].start_us for cluster_id, ends in self.shutdowns.items()}

    @cached_property
    def deaths(self) -> list[Death]:
        """Return the ends of processes that lines date, orderly stops included."""
        found = [
            Death(away.node, away.state.start_us, away.up_us if away.boot_us is None else away.boot_us)
            for away in self.aways
            if away.state.state == "down" and (away.boot_us is None or away.state.is_dated)
        ]
        known = {death.node for death in found if death.boot_us is None}
        return found + [
            Death(of_node, row["last_time"], None)
            for of_node, row in self._last.items()
            if of_node not in known
            and row["seconds_before"] >= STEADY_SECONDS
            and row["last_time"] < self._evidence.ends.get(of_node[0], 0)
        ]


class Death(NamedTuple):
    """The end of a process, and the start of the next one."""

    node: Node
    last_us: int  #: It was dead from then on.
    boot_us: int | None  #: The first sign of the next process; None if there is none.


def _is_registered(row: Row, of_node: Node, before_us: int) -> bool:
    return bool(row["event"] == "registered" and node(row) == of_node and row["time"] < before_us)


def _returned(span: Missed, until_us: int | None, state: State) -> list[BrokerState]:
    """Return the state of a node after a time away. Empty if no line shows it up again."""
    back = span.back_us
    if back is None or (until_us is not None and back >= until_us):
        return []
    return [BrokerState(state, back, back, "returned", (Witness("controller", back),))]


def _own(row: Row) -> Witness:
    return Witness("own", row["time"], place(row))


def _exit(row: Row) -> Witness:
    return Witness("container", row["time"], Place(row["exit_file_id"], row["byte_offset"]), row["text"])


def rows_of(states: Mapping[Node, Iterable[BrokerState]]) -> Iterable[dict[str, object]]:
    """Yield rows of `gold.broker_timeline`."""
    for (cluster_id, broker_id), of_node in states.items():
        for position, state in enumerate(of_node):
            places = [each for each in state.shown if each.place is not None]
            first = min(places, key=lambda witness: witness.time_us, default=None)
            where = None if first is None else first.place
            yield {
                "cluster_id": cluster_id,
                "broker_id": broker_id,
                "position": position,
                "state": state.state,
                "begin_after_time": state.after_us,
                "begin_by_time": state.by_us,
                "end_after_time": state.end_after_us,
                "end_by_time": state.end_by_us,
                "reason": state.reason,
                "witnesses": list(state.witnesses),
                "file_id": None if where is None else where.file_id,
                "byte_offset": None if where is None else where.byte_offset,
            }
