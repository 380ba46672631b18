"""A leader whose high watermark lies below its own log start: it answers no fetch, and nothing is committed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipelines.incidents.facts import Facts, Row, node, place
from pipelines.incidents.incident import CRITICAL, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.known import bug_of
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import span, times

_FAILED = Signature(
    "fetch_failed_at_leader",
    ("ReplicaManager",),
    r"(?:\[[^\]]*\]:? )?Error processing fetch (?:with max size -?\d+ )?(?:operation )?"
    r"(?:from (?:replica \[?\d+\]?|consumer) )?on partition (?:[\w-]{22}:)?(?P<key>[\w.-]+-\d+)\b.*",
    "kafka.server.ReplicaManager.readFromLocalLog",
    ("ERROR",),
)
_OUT_OF_RANGE = re.compile(
    r"OffsetOutOfRangeException: Received request for offset (?P<offset>\d+) for partition (?P<partition>\S+), but we "
    r"only have log segments (?:in the range|upto) (?P<start>\d+)"
)


def detect(facts: Facts) -> Iterable[Incident]:
    """Errors of a leader that asks its own log for an offset below its start."""
    for row in facts.remarked(_FAILED.name):
        match = _OUT_OF_RANGE.search(row["message"])
        if match is not None and int(match["offset"]) < int(match["start"]):
            yield _stuck(facts, row, int(match["offset"]), int(match["start"]))


def _stuck(facts: Facts, row: Row, offset: int, start: int) -> Incident:
    version = facts.version(node(row), row["first_time"])
    bug = bug_of("KAFKA-9491", version) or bug_of("KAFKA-16452", version)
    return Incident(
        kind=KIND.name,
        severity=CRITICAL,
        cluster_id=row["cluster_id"],
        start_us=row["first_time"],
        end_us=None,
        broker_ids=(row["broker_id"],),
        partitions=frozenset({row["key"]}),
        sentence=(
            f"Partition {row['key']} cannot replicate {span(row['first_time'], None)}: its leader, broker "
            f"{row['broker_id']}, has high watermark {offset}, below its own log start {start}, and answers fetches "
            f"with an error ({times(row['line_count'])})."
        ),
        advice=(
            "Move the leadership to a replica that was in the ISR before (preferred replica election); upgrade to a "
            "release with the fix."
        ),
        figures={"high_watermark": offset, "log_start_offset": start, "errors": row["line_count"]},
        places=(place(row),),
        known_bug=bug,
        weight=2_500.0,
    )


KIND = Kind(
    name="high_watermark_below_start",
    meaning="A leader's high watermark lies below its log start offset, and its own log refuses to read there.",
    source="kafka.log.Log.convertToOffsetMetadataOrThrow; KAFKA-9491, KAFKA-16452",
    detect=detect,
    signatures=(_FAILED,),
)
