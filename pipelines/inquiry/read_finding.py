"""Reads one finding of a rule, its evidence and what follows from it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from pipelines.inquiry.finding import FindingRows
from pipelines.inquiry.read_lines import lines_of
from pipelines.inquiry.shown import SHOWS, shows
from pipelines.lake.reader import LakeReader, Rows
from pipelines.rules.registry import BY_ID

#: Sentences that are said of one line.
SENTENCES_MAX = 2


def findings(reader: LakeReader, finding_id: str) -> Rows:
    """Findings whose id begins so, and those of a rule of this name."""
    return reader.rows(
        """SELECT * FROM gold_violations WHERE starts_with(finding_id, $id) OR rule_id = $id
           ORDER BY severity = 'violation' DESC, implied_by IS NOT NULL, topic, partition, offset_start, finding_id""",
        id=finding_id,
    )


def finding_rows(reader: LakeReader, finding: dict[str, Any]) -> FindingRows:
    """The rows of one of these."""
    of = {"id": finding["finding_id"]}
    origin = {"id": finding["implied_by"]}
    evidence = reader.rows("SELECT * FROM gold_evidence WHERE finding_id = $id ORDER BY position", **of)
    shown = _shown(reader, finding, evidence)
    texts = lines_of(reader, evidence).texts
    for line in evidence:
        place = line["file_id"], line["byte_offset"]
        line |= {"shows": " ".join(shown.get(place, ())), "text": texts.get(place, line["text"])}
    implied = reader.rows("SELECT * FROM gold_violations WHERE implied_by = $id ORDER BY rule_id, offset_start", **of)
    by = reader.rows("SELECT * FROM gold_violations WHERE finding_id = $id", **origin) if finding["implied_by"] else []
    rule = BY_ID.get(finding["rule_id"])
    clocks = (
        reader.rows("SELECT * FROM gold_clock_bounds WHERE cluster_id = $cluster", cluster=finding["cluster_id"])
        if reader.has("gold.clock_bounds")
        else []
    )
    return FindingRows(
        finding, evidence, implied, by[0] if by else None, "unknown." if rule is None else rule.texts.guarantee, clocks
    )


def _shown(reader: LakeReader, finding: dict[str, Any], evidence: Rows) -> dict[tuple[str, int], list[str]]:
    """What each line of evidence shows of the finding's partition, by place: a sentence per row that it became."""
    places = {(line["file_id"], line["byte_offset"]) for line in evidence if line["file_id"] is not None}
    if not places:
        return {}
    topic, partition = finding["topic"], finding["partition"]
    parameters = {
        "files": sorted({file_id for file_id, _ in places}),
        "starts": sorted({start for _, start in places}),
        "least": min(start for _, start in places),
        "largest": max(start for _, start in places),
    }
    sentences: dict[tuple[str, int], dict[str, None]] = defaultdict(dict)
    for table in SHOWS:
        if not reader.has(table):
            continue
        rows = reader.rows(
            f"""SELECT * FROM {table.replace(".", "_")}
                WHERE file_id IN (SELECT unnest($files)) AND byte_offset IN (SELECT unnest($starts))
                  AND byte_offset BETWEEN $least AND $largest""",
            **parameters,
        )
        for row in rows:
            place = row["file_id"], row["byte_offset"]
            is_of_other = topic is not None and row.get("topic") is not None and row["topic"] != topic
            is_of_other = is_of_other or (partition is not None and row.get("partition") not in (None, partition))
            if place in places and not is_of_other:
                sentences[place][shows(table, row | {"of_topic": topic, "of_partition": partition})] = None
    return {place: list(of_place)[:SENTENCES_MAX] for place, of_place in sentences.items()}
