"""Facts of each broker's whole log that the replay of ISRs needs, put together. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from highwater.pipelines.cluster.premises import Premises
from highwater.pipelines.kafka.seals import Broker, Seal
from highwater.pipelines.replay import connections as c
from highwater.pipelines.replay.isr_evidence import FENCED, SHUTTING_DOWN, UNFENCED, Gap, IsrEvidence, Span, continued

Evidences = dict[Broker, IsrEvidence]
Rows = Sequence[Mapping[str, Any]]

KRAFT: Final = "kraft"
_OF_KRAFT = {
    "broker_fenced": FENCED,
    "broker_registered": FENCED,  # a broker is fenced from its registration until it has caught up with the metadata
    "broker_unfenced": UNFENCED,
    "controlled_shutdown": SHUTTING_DOWN,
}
_OF_ZOOKEEPER = {
    "broker_failed": FENCED,
    "broker_registered": UNFENCED,
    "controlled_shutdown": SHUTTING_DOWN,
}

#: (from when, `FENCED`, `SHUTTING_DOWN` or `UNFENCED`), in time order.
Fencing = tuple[tuple[int, str], ...]


def evidences_of(
    rows_of: Callable[[str], Rows], premises: Premises, carried: Evidences, seals: Mapping[Broker, Seal]
) -> Evidences:
    """Return the facts of each broker's log by (cluster, broker).

    Args:
        rows_of: returns the rows of a table of `pipelines.replay.connections.SHAPES`: silences, gaps, fetch chains.
        carried: facts of an earlier run, for brokers that resume.
        seals: checkpoints from which they resume.
    """
    gaps: dict[Broker, dict[str, list[Gap]]] = defaultdict(lambda: defaultdict(list))
    for row in rows_of(c.GAPS):
        gap = Gap(row["since_us"], row["handled_us"], row["until_us"], row["complete"])
        gaps[_get_broker(row)][row["connection"]].append(gap)
    ends: dict[Broker, dict[str, int]] = defaultdict(dict)
    for row in rows_of(c.CHAIN_ENDS):
        ends[_get_broker(row)][row["chain"]] = row["arrival_us"]
    resumed: dict[Broker, dict[str, int]] = defaultdict(dict)
    for row in rows_of(c.RESUMED):
        resumed[_get_broker(row)][row["connection"]] = row["since_us"]
    logged: dict[Broker, Span] = {
        _get_broker(row): (row["since_us"] - c.LOGGED_SLACK_US, row["until_us"] + c.LOGGED_SLACK_US)
        for row in rows_of(c.LOGGED)
    }
    last_us = {broker: evidence.last_line_us for broker, evidence in carried.items() if evidence.last_line_us}
    silences: dict[Broker, list[Span]] = defaultdict(list)
    for row in rows_of(c.SILENCES):
        if row["since_us"] is None:
            last_us[_get_broker(row)] = row["until_us"]
        else:
            silences[_get_broker(row)].append((row["since_us"], row["until_us"]))
    standing = fencings(premises)
    brokers = {(file.cluster_id, file.broker_id) for file in premises.files if file.broker_id is not None}
    evidences: Evidences = {}
    for broker in brokers | logged.keys() | last_us.keys() | standing.keys():
        evidences[broker] = IsrEvidence(
            fetches_logged=(logged[broker],) if broker in logged else (),
            silences=tuple(sorted(silences.get(broker, ()))),
            gaps={connection: tuple(sorted(some)) for connection, some in gaps.get(broker, {}).items()},
            standing=standing.get(broker, {}),
            kraft=premises.modes.get(broker, KRAFT) == KRAFT,
            chain_ends=ends.get(broker, {}),
            last_line_us=last_us.get(broker, 0),
        )
    for broker, evidence in carried.items():
        now = evidences.get(broker, IsrEvidence())
        evidences[broker] = continued(evidence, now, seals[broker].sealed_us, resumed.get(broker, {}))
    return evidences


def _get_broker(row: Mapping[str, Any]) -> Broker:
    return row["cluster_id"], row["broker_id"]


def fencings(premises: Premises) -> dict[Broker, dict[int, Fencing]]:
    """Return the states (for example fenced) that a controller logged: by broker, then by replica.

    Only controllers on the broker's own host are used, because they share its clock.
    """
    by_broker: dict[Broker, dict[int, list[tuple[int, str]]]] = defaultdict(lambda: defaultdict(list))
    for cluster_id, row in sorted(premises.events, key=lambda event: (event[1].time_us, event[1].ref.byte_offset)):
        broker, replica_id = (cluster_id, row.broker_id), row.subject_broker_id
        states = _OF_KRAFT if premises.modes.get(broker, KRAFT) == KRAFT else _OF_ZOOKEEPER
        state = states.get(row.event)
        if state is None or replica_id is None:
            continue
        history = by_broker[broker][replica_id]
        if history and history[-1][0] == row.time_us:
            history.pop()  # a starting controller replays its history at one time: the last state counts
        if not history or history[-1][1] != state:
            history.append((row.time_us, state))
    return {
        broker: {replica_id: tuple(history) for replica_id, history in histories.items()}
        for broker, histories in by_broker.items()
    }
