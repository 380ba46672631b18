"""A KRaft controller fenced a broker whose process lived on."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.facts import Facts, Row, place
from pipelines.incidents.incident import MAJOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.broker_died import deaths
from pipelines.incidents.kinds.broker_stalled import turns
from pipelines.incidents.kinds.controller_changed import terms
from pipelines.incidents.words import clock, lasting

#: A process that began or ended so shortly before is fenced for that, microseconds.
_END_US = 60_000_000
#: Controllers and metadata repeat one fencing within this, microseconds.
_TOGETHER_US = 15_000_000


def detect(facts: Facts) -> Iterable[Incident]:
    """Fencings of brokers that neither began nor ended shortly before, and that go on to write lines."""
    of_nodes, in_order, died = turns(facts), terms(facts), deaths(facts)
    lines = {(row["cluster_id"], row["broker_id"]): row["last_time"] for row in facts.last_lines}
    last: dict[tuple[str, int], int] = {}
    for row in facts.controller_events:
        if row["event"] != "broker_fenced" or row["subject_broker_id"] is None:
            continue
        broker = row["cluster_id"], row["subject_broker_id"]
        is_new = row["time"] - last.get(broker, -_TOGETHER_US) >= _TOGETHER_US
        last[broker] = row["time"]
        in_office = [term.controller for term in in_order.get(row["cluster_id"], ()) if term.elected_us <= row["time"]]
        is_active = not in_office or in_office[-1] == row["broker_id"]
        is_near_end = any(
            row["time"] - _END_US <= turn.time_us <= row["time"] + _TOGETHER_US for turn in of_nodes[broker]
        )
        # Without a quorum a dead broker is fenced late.
        was_dead = any(
            death.node == broker and death.last_us <= row["time"] and (death.boot_us or row["time"]) >= row["time"]
            for death in died
        )
        if is_new and is_active and not (is_near_end or was_dead) and lines.get(broker, 0) > row["time"] + _TOGETHER_US:
            yield _fenced(facts, row)


def _fenced(facts: Facts, row: Row) -> Incident:
    broker_id = row["subject_broker_id"]
    backs = [
        other["time"]
        for other in facts.controller_events
        if other["cluster_id"] == row["cluster_id"]
        and other["event"] == "broker_unfenced"
        and other["subject_broker_id"] == broker_id
        and other["time"] > row["time"]
    ]
    end = min(backs, default=None)
    back = "it was not let in again" if end is None else f"it was let in again after {lasting(end - row['time'])}"
    return Incident(
        kind=KIND.name,
        severity=MAJOR,
        cluster_id=row["cluster_id"],
        start_us=row["time"],
        end_us=end,
        broker_ids=(broker_id,),
        sentence=(
            f"The controller fenced broker {broker_id} at {clock(row['time'])}, though its process lived: its "
            f"heartbeats had not come for broker.session.timeout.ms; {back}."
        ),
        unexplained=f"Look at what kept broker {broker_id} from the active controller: a long pause, or the network.",
        places=(place(row),),
        weight=50.0,
        by=(broker_id,),
    )


KIND = Kind(
    name="broker_fenced",
    meaning="A KRaft controller fenced a broker whose process lived: its session had timed out.",
    source="org.apache.kafka.controller.ReplicationControlManager.maybeFenceOneStaleBroker; KIP-631",
    detect=detect,
    causes=("broker_stalled", "quorum_unreachable", "controller_changed"),
)
