"""A coordinator aborted transactions that their producers left open."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.episodes import brokers_of, first, last, lines, places, together
from pipelines.incidents.facts import Facts, Row
from pipelines.incidents.incident import MINOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import brokers, listed_some, number, when

_ABORTED = Signature(
    "transaction_timed_out",
    ("TransactionCoordinator",),
    r"(?:\[[^\]]*\]:? )?Completed rollback of ongoing transaction (?:of|for) transactionalId (?P<key>.+) due to "
    r"timeout",
    "kafka.coordinator.transaction.TransactionCoordinator.abortTimedOutTransactions, 1.0 on",
    ("INFO",),
    gap_s=600,
)


def detect(facts: Facts) -> Iterable[Incident]:
    """Episodes by cluster."""
    for group in together(facts.remarked(_ABORTED.name), lambda row: row["cluster_id"], 60_000_000):
        yield _aborted(group)


def _aborted(group: list[Row]) -> Incident:
    start, end, count, ids = first(group), last(group), lines(group), brokers_of(group)
    names = sorted({row["key"] for row in group})
    return Incident(
        kind=KIND.name,
        severity=MINOR,
        cluster_id=group[0]["cluster_id"],
        start_us=start,
        end_us=end,
        broker_ids=ids,
        sentence=(
            f"{number(count, 'transaction')} of {listed_some(names, 'transactional ids')} timed out and "
            f"{'was' if count == 1 else 'were'} aborted{' by ' + brokers(ids) if ids else ''} {when(start, end)}; "
            f"{'its producer is' if count == 1 else 'their producers are'} fenced."
        ),
        advice=(
            "Look at what these producers did meanwhile: a crash, a pause, or work longer than transaction.timeout.ms "
            "between begin and commit."
        ),
        figures={"transactions": count, "transactional_ids": len(names)},
        places=places(group),
        weight=float(count),
    )


KIND = Kind(
    name="transactions_timed_out",
    meaning="A coordinator aborted transactions that were open for longer than transaction.timeout.ms.",
    source="kafka.coordinator.transaction.TransactionCoordinator.abortTimedOutTransactions",
    detect=detect,
    signatures=(_ABORTED,),
    causes=("broker_stalled", "broker_died"),
)
