"""Spans in which others missed a node: its controller, its peers, its session. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from highwater.pipelines.timelines.rows import Node, Place, Row, Rows, node, place
from highwater.pipelines.timelines.terms import ControllerTerm

#: Clocks of two nodes of one cluster may differ this much unnoticed, microseconds.
CLOCKS_US = 1_500_000
#: The expiry of a session and what follows are one event, microseconds.
_EXPIRED_ONCE_US = 10_000_000
#: A node that replays two records of the past does so within this, microseconds.
_REPLAYED_US = 1_000_000
#: Peers that cannot reach a node try again within this, microseconds.
_RETRY_US = 20_000_000
#: States in which a broker is out of the cluster already, by the event that would put it out: KRaft registers a broker
#: fenced; a registration in ZooKeeper lets the broker in.
_OUT = {
    "broker_fenced": ("broker_registered", "controlled_shutdown", "broker_fenced"),
    "broker_failed": ("controlled_shutdown", "broker_failed"),
}
_BACK = ("broker_unfenced", "broker_registered")
_STOPS = "controlled_shutdown"
_REASONS = {"broker_fenced": "fenced", "broker_failed": "removed", _STOPS: "shutdown"}


class Witness(NamedTuple):
    """A line that shows a state of a node."""

    source: str  #: own, controller, peers, session or container.
    time_us: int
    place: Place | None = None
    text: str = ""  #: Message of another program, or event of the controller; else empty.


class Loss(NamedTuple):
    """A time in which a peer could not reach a node. In us."""

    first_us: int
    last_us: int
    place: Place | None = None


class Missed(NamedTuple):
    """A time in which a broker was away, as its controller or the end of its session shows."""

    node: Node
    time_us: int  #: First line about it.
    back_us: int | None  #: Registered or unfenced again. None if no line shows that.
    reason: str  #: fenced (KRaft), removed (ZooKeeper), session_expired, or shutdown (the controller granted it).
    shown: tuple[Witness, ...]


def removals(
    controller_events: Rows, terms: Mapping[str, Sequence[ControllerTerm]], with_lines: Collection[Node]
) -> list[Missed]:
    """Return the times in which an active controller missed a broker, or after it allowed it to stop."""
    state: dict[Node, str] = {}
    lost: dict[Node, Row] = {}
    stops: dict[Node, Row] = {}
    believed: dict[Node, int | None] = {}
    found = []
    ends = _ends_of_terms(controller_events, terms)
    for row in controller_events:
        if row["event"] in ("controller_elected", "controller_resigned"):
            is_elected = row["event"] == "controller_elected"
            believed[row["cluster_id"], row["broker_id"]] = row["subject_broker_id"] if is_elected else None
        if row["event"] not in (*_OUT, *_BACK, _STOPS) or not _is_valid(row, terms, with_lines, believed):
            continue
        # A controller that froze fences all brokers before it learns that it was replaced: nothing is committed.
        times = ends[node(row)]
        if row["event"] in _OUT and any(0 <= time - row["time"] <= CLOCKS_US for time in times):
            continue
        for broker_id in {row["subject_broker_id"], *(row["brokers"] or ())} - {None}:
            broker = row["cluster_id"], broker_id
            if broker in lost and row["event"] in _BACK:
                out = lost.pop(broker)
                if not _is_past(out, row["time"]):
                    found.append(_removal(out, broker, row["time"]))
            elif broker not in lost and row["event"] in _OUT and state.get(broker) not in _OUT[row["event"]]:
                lost[broker] = row
            if broker in stops and row["event"] in _BACK:
                found.append(_removal(stops.pop(broker), broker, row["time"]))
            elif row["event"] == _STOPS and broker not in lost:
                stops.setdefault(broker, row)
            state[broker] = row["event"]
    return found + [_removal(row, broker, None) for out in (lost, stops) for broker, row in out.items()]


def _ends_of_terms(
    controller_events: Rows, terms: Mapping[str, Sequence[ControllerTerm]]
) -> Mapping[Node, Sequence[int]]:
    """Return by node when it resigned as controller, learned of another one, or was replaced before it learned."""
    ends: dict[Node, list[int]] = defaultdict(list)
    for row in controller_events:
        is_another = row["event"] == "controller_elected" and row["subject_broker_id"] not in (None, row["broker_id"])
        if is_another or row["event"] == "controller_resigned":
            ends[node(row)].append(row["time"])
    for cluster_id, of_cluster in terms.items():
        for before, after in pairwise(of_cluster):
            of_node = ends[cluster_id, before.controller]
            if before.controller != after.controller and any(time > after.elected_us for time in of_node):
                of_node.append(after.elected_us)
    return ends


def _is_valid(
    row: Row,
    terms: Mapping[str, Sequence[ControllerTerm]],
    with_lines: Collection[Node],
    believed: Mapping[Node, int | None],
) -> bool:
    """Return True if a line about a broker is from the active controller, or from a node that replays its records.

    A deposed controller acts on old sessions until it learns of its successor. Records that it replays in that time are
    never committed.

    Args:
        believed: the controller that each node last knew as active.
    """
    of_node = row["cluster_id"], row["broker_id"]
    before = [term for term in terms.get(row["cluster_id"], ()) if term.elected_us <= row["time"]]
    active = before[-1].controller if before else row["broker_id"]
    if active == row["broker_id"]:
        return True
    # Replayed records may come late. They count if the active controller has no logs here.
    return (row["cluster_id"], active) not in with_lines and believed.get(of_node) != row["broker_id"]


def _removal(row: Row, broker: Node, back_us: int | None) -> Missed:
    reason = _REASONS[row["event"]]
    shown = Witness("controller", row["time"], place(row), row["event"])
    return Missed(broker, row["time"], back_us, reason, (shown,))


def _is_past(row: Row, back_us: int | None) -> bool:
    """Return True if a node only replayed that a broker was fenced and unfenced."""
    is_replayed = (row["detail"] or "").startswith("Replayed")
    return is_replayed and back_us is not None and back_us - row["time"] < _REPLAYED_US


def expired_sessions(lifecycle: Rows) -> list[Missed]:
    """Return the times after expired ZooKeeper sessions that brokers logged themselves."""
    last: dict[Node, int] = {}
    found = []
    for row in lifecycle:
        if row["event"] != "zookeeper_expired" or row["broker_id"] is None:
            continue
        time, of_node = row["time"], node(row)
        is_new = time - last.get(of_node, time - _EXPIRED_ONCE_US) >= _EXPIRED_ONCE_US
        last[of_node] = time
        if is_new:
            backs = (
                other["time"]
                for other in lifecycle
                if other["event"] == "registered" and node(other) == of_node and other["time"] >= time
            )
            shown = (Witness("session", time, place(row)),)
            found.append(Missed(of_node, time, min(backs, default=None), "session_expired", shown))
    return found


def merged(missed: Iterable[Missed]) -> dict[Node, list[Missed]]:
    """Return times by node, in order. Overlapping ones are merged."""
    of_nodes: dict[Node, list[Missed]] = defaultdict(list)
    for each in sorted(missed, key=lambda each: (each.node, each.time_us)):
        of_node = of_nodes[each.node]
        last = of_node[-1] if of_node else None
        if last is not None and (last.back_us is None or each.time_us <= last.back_us + CLOCKS_US):
            reason = "session_expired" if "session_expired" in (last.reason, each.reason) else last.reason
            back = None if last.back_us is None and each.back_us is None else max(last.back_us or 0, each.back_us or 0)
            of_node[-1] = last._replace(back_us=back, reason=reason, shown=(*last.shown, *each.shown))
        else:
            of_node.append(each)
    return of_nodes


def first_missed(losses: Sequence[Loss], events_us: Iterable[int], after_us: int, until_us: int) -> Witness | None:
    """Return the first failed contact after `after_us` by peers that still miss the node at `until_us`. None without
    one.

    Args:
        events_us: when controllers missed the node.
    """
    spans = [(loss.first_us, loss.last_us, loss.place) for loss in losses if after_us < loss.first_us <= until_us]
    marks = [(time, time, None) for time in events_us if after_us < time <= until_us]
    begun: tuple[int, Place | None] | None = None
    upto, is_found_gone = 0, False
    for first, last, where in sorted([*spans, *marks], key=lambda span: span[:2]):
        if begun is None or first - upto > _RETRY_US:
            begun, is_found_gone = (first, where), False
        upto, is_found_gone = max(upto, last), is_found_gone or where is None
    # Peers that stopped trying reached it again, unless a controller made them stop.
    is_missed = begun is not None and (is_found_gone or until_us - upto <= _RETRY_US)
    return Witness("peers", *begun) if begun is not None and is_missed else None


def replacements(terms: Mapping[str, Sequence[ControllerTerm]], controller_events: Rows) -> list[tuple[Node, Witness]]:
    """Return each controller that was replaced without having resigned, with the line that shows the new controller."""
    resigned: dict[Node, list[int]] = defaultdict(list)
    for row in controller_events:
        if row["event"] == "controller_resigned":
            resigned[node(row)].append(row["time"])
    found = []
    for cluster_id, of_cluster in terms.items():
        for before, after in pairwise(of_cluster):
            of_node = cluster_id, before.controller
            is_resigned = any(before.elected_us <= time <= after.elected_us for time in resigned[of_node])
            if before.controller != after.controller and not is_resigned:
                found.append((of_node, Witness("controller", after.elected_us, after.place)))
    return found
