"""The story of one finding of a rule: its lines in order, its consequences, its meaning."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from highwater.pipelines.base.plain import number, offsets
from highwater.pipelines.base.values import iso_utc
from highwater.pipelines.incidents.incident import releases_of
from highwater.pipelines.inquiry.answer import Answer, Row, Rows, Table, join_values, name_partition
from highwater.pipelines.inquiry.read_lines import load_lines
from highwater.pipelines.inquiry.shown import SHOWS, describe_row
from highwater.pipelines.lake.lines import Place, find_rows
from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.report.cluster.parts import Step
from highwater.pipelines.rules.registry import BY_ID
from highwater.pipelines.timing.clocks.order import sort_lines
from highwater.schemas.package_data import read_toml

_WORDS: Final = read_toml(__package__, "words.toml")["finding"]
_MEANING: Final[dict[str, str]] = _WORDS["meaning"]


@dataclass(frozen=True)
class FindingRows:
    """Rows of one finding: of ``gold.violations`` and ``gold.evidence``. `guarantee` is the rule's text."""

    finding: Row
    evidence: Rows
    implied: Rows
    implied_by: Row | None
    guarantee: str
    clocks: Rows = ()  #: rows of ``gold.clock_bounds`` of its cluster


def answer(rows: FindingRows) -> Answer:
    """Return an answer about a finding: its log lines in order, and sentences. The evidence already has its lines."""
    finding = rows.finding
    lines, note = sort_lines(rows.evidence, rows.clocks)
    where = "" if finding["topic"] is None else f" at {name_partition(finding['topic'], finding['partition'])}"
    return Answer(
        title=f"{finding['severity']} {finding['rule_id']}{where}, finding {finding['finding_id']}",
        sentences=(*_write_sentences(rows), *([note] if note else [])),
        steps=tuple(map(_make_step, lines)),
        tables=tuple(_make_tables(rows)),
    )


def _write_sentences(rows: FindingRows) -> Iterator[str]:
    finding = rows.finding
    yield str(finding["message"])
    yield f"The guarantee: {rows.guarantee} {_MEANING[finding['severity']]}"
    several = "s" if len(finding["brokers"]) > 1 else ""
    subjects = [f"broker{several} {join_values(finding['brokers'])}"] if finding["brokers"] else []
    if finding["leader_epoch"] is not None:
        subjects.append(f"leader epoch {finding['leader_epoch']}")
    if finding["offset_start"] is not None:
        subjects.append(offsets(finding["offset_start"], finding["offset_end"]))
    if finding["records"] is not None:
        subjects.append(number(finding["records"], "request or record"))
    if subjects:
        about = ", ".join(subjects)
        yield f"{about[:1].upper()}{about[1:]}."
    if finding["cause"]:
        yield f"Cause: {finding['cause'].replace('_', ' ')}."
    if finding["known_bug"]:
        fixed = releases_of(finding["known_bug"])
        fix = f", fixed in {fixed}" if fixed else ""
        yield f"Known bug of this release with this signature: {finding['known_bug']}{fix}."
    if rows.implied_by is not None:
        other = rows.implied_by
        yield f"Follows from {other['rule_id']} ({other['finding_id']}): {other['message']}"
    if not rows.evidence:
        yield "The lake holds no evidence lines of this finding."


def _make_step(line: Row) -> Step:
    """Return a step for a line of evidence. Data file contents have no time."""
    broker = "" if line["broker_id"] is None else f" of broker {line['broker_id']}"
    return Step(
        time=None if line["time"] is None else iso_utc(line["time"]),
        what=line.get("shows") or (f"A file{broker} holds:" if line["time"] is None else f"A line{broker}:"),
        file=line["file"],
        line_no=line["line_no"],
        byte_offset=line["byte_offset"],
        text=line["text"],
    )


def _make_tables(rows: FindingRows) -> Iterator[Table]:
    if rows.implied:
        names = ("finding_id", "rule_id", "severity", "offset_start", "offset_end")
        implied = tuple({name: row[name] for name in names} for row in rows.implied)
        yield Table(title="what follows from it", rows=implied)


#: Sentences that are said of one line.
SENTENCES_MAX = 2


def find_findings(reader: LakeReader, finding_id: str) -> list[dict[str, Any]]:
    """Return rows of ``gold.violations`` whose id starts with `finding_id`, or whose rule has this name."""
    return reader.rows(
        """SELECT * FROM gold_violations WHERE starts_with(finding_id, $id) OR rule_id = $id
           ORDER BY severity = 'violation' DESC, implied_by IS NOT NULL, topic, partition, offset_start, finding_id""",
        id=finding_id,
    )


def read_finding(reader: LakeReader, finding: dict[str, Any]) -> FindingRows:
    """Return the rows of one finding."""
    of = {"id": finding["finding_id"]}
    origin = {"id": finding["implied_by"]}
    evidence = reader.rows("SELECT * FROM gold_evidence WHERE finding_id = $id ORDER BY position", **of)
    shown = _describe_evidence(reader, finding, evidence)
    texts = load_lines(reader, evidence).texts
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


def _describe_evidence(reader: LakeReader, finding: dict[str, Any], evidence: Rows) -> dict[Place, list[str]]:
    """Return by (file id, offset) of each line of evidence the sentences about the finding's partition."""
    places = {(line["file_id"], line["byte_offset"]) for line in evidence if line["file_id"] is not None}
    topic, partition = finding["topic"], finding["partition"]
    sentences: dict[Place, dict[str, None]] = defaultdict(dict)
    for table in filter(reader.has, SHOWS):
        for row in find_rows(reader, table.replace(".", "_"), places):
            is_of_other = topic is not None and row.get("topic") is not None and row["topic"] != topic
            is_of_other = is_of_other or (partition is not None and row.get("partition") not in (None, partition))
            if not is_of_other:
                sentence = describe_row(table, row | {"of_topic": topic, "of_partition": partition})
                sentences[row["file_id"], row["byte_offset"]][sentence] = None
    return {place: list(of_place)[:SENTENCES_MAX] for place, of_place in sentences.items()}
