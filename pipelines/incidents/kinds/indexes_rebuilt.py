"""A broker found indexes damaged as it loaded its logs: the process before did not end in order."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.episodes import brokers_of, first, last, lines, places, together
from pipelines.incidents.facts import Facts
from pipelines.incidents.incident import INFO, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import brokers, number, sentence, when

_DAMAGED = Signature(
    "index_damaged",
    ("Log", "LogLoader", "LogSegment", "UnifiedLog", "MergedLog"),
    r"(?:\[[^\]]*\]:? )?(?:Found a corrupted index file.*|Could not find offset index file corresponding to log file .*"
    r"|Found an orphaned index file.*|Found invalid (?:messages|offset|log).*|Corruption found in segment .*)",
    "kafka.log.LogLoader.loadSegmentFiles, Log.loadSegmentFiles before 3.0; LogSegment.recover",
)


def detect(facts: Facts) -> Iterable[Incident]:
    """Episodes by broker."""
    rows = [row for row in facts.remarked(_DAMAGED.name) if row["broker_id"] is not None]
    for group in together(rows, lambda row: (row["cluster_id"], row["broker_id"]), 60_000_000):
        start, end, ids = first(group), last(group), brokers_of(group)
        count = lines(group)
        yield Incident(
            kind=KIND.name,
            severity=INFO,
            cluster_id=group[0]["cluster_id"],
            start_us=start,
            end_us=end,
            broker_ids=ids,
            sentence=sentence(
                f"{brokers(ids)} found {number(count, 'segment')} with a damaged index or end {when(start, end)}: "
                "the process before had not ended in order."
            ),
            figures={"segments": lines(group)},
            places=places(group),
            weight=float(lines(group)),
        )


KIND = Kind(
    name="indexes_rebuilt",
    meaning="A broker rebuilt indexes, or cut the end of a segment, as it loaded its logs.",
    source="kafka.log.LogLoader.loadSegmentFiles, LogSegment.recover",
    detect=detect,
    signatures=(_DAMAGED,),
    causes=("broker_died", "broker_halted", "log_directory_failed"),
)
