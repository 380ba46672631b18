"""A dead broker went on being the leader of partitions: nobody fenced it when its session had run out."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.facts import Facts, Node, Row, partition_name
from pipelines.incidents.incident import CRITICAL, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.broker_died import Death, deaths
from pipelines.incidents.words import lasting, partitions, sentence, span

#: A controller that is there fences a broker so soon after its session has run out, microseconds.
PROMPT_US = 5_000_000
#: zookeeper.session.timeout.ms since 2.5, twice broker.session.timeout.ms.
_SESSION_MS = 18_000
#: Ends of leaderships that a live leader saw.
_MOVED = ("controlled_shutdown", "preferred", "reassignment", "log_dir_failed")


def detect(facts: Facts) -> Iterable[Incident]:
    """Leaderships of dead brokers that another one took over later than a session and some seconds."""
    for death in deaths(facts):
        session_us = _session_ms(facts, death.node) * 1000
        late = [
            row
            for row in facts.failovers
            if (row["cluster_id"], row["old_leader"]) == death.node
            and row["reason"] not in _MOVED
            and row["elected_time"] is not None
            and row["elected_time"] - death.last_us > session_us + PROMPT_US
            and (death.boot_us is None or row["elected_time"] < death.boot_us)
        ]
        if late:
            yield _not_fenced(death, late, session_us)


def _session_ms(facts: Facts, broker: Node) -> int:
    in_kraft = facts.config(broker, "process.roles") not in (None, "", "[]")
    told = facts.config(broker, "broker.session.timeout.ms" if in_kraft else "zookeeper.session.timeout.ms")
    return int(told) if told is not None and told.isdigit() else _SESSION_MS


def _not_fenced(death: Death, rows: list[Row], session_us: int) -> Incident:
    cluster_id, broker_id = death.node
    names = frozenset(map(partition_name, rows))
    until = max(row["serving_time"] or row["elected_time"] for row in rows)
    were = "were" if len(names) > 1 else "was"
    return Incident(
        kind=KIND.name,
        severity=CRITICAL,
        cluster_id=cluster_id,
        start_us=death.last_us,
        end_us=until,
        broker_ids=(broker_id,),
        partitions=names,
        sentence=sentence(
            f"{partitions(names)} {were} led by broker {broker_id}, which was dead, {span(death.last_us, until)}: "
            f"nobody could write there or read. Its session had run out after {lasting(session_us)}, and no controller "
            "fenced it before."
        ),
        unexplained="Look at the controllers: without a majority of the quorum nobody is fenced, no leader elected.",
        figures={"partitions": len(names), "dead_s": (until - death.last_us) / 1e6, "session_s": session_us / 1e6},
        weight=len(names) * (until - death.last_us) / 1e6,
    )


KIND = Kind(
    name="leader_not_fenced",
    meaning="A dead broker was still the leader long after its session had run out: partitions were unavailable.",
    source="org.apache.kafka.controller.ReplicationControlManager.maybeFenceOneStaleBroker, which a quorum has to "
    "commit; KafkaController.onBrokerFailure with ZooKeeper",
    detect=detect,
    causes=("broker_died", "broker_halted", "controller_changed", "quorum_unreachable"),
)
