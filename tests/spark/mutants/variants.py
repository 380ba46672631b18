"""Many variants of real logs in one lake: each is a cluster of its own, so that one audit judges all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from hashlib import md5
from typing import Any, NamedTuple

import pyarrow as pa

from highwater.pipelines.base.config import Config
from highwater.pipelines.gold import gold
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.silver.parse import parse
from highwater.schemas.audit import RULE_RESULTS, VIOLATIONS
from highwater.schemas.bronze import LOG_FILES, LOG_LINES
from tests.spark.mutants.slices import Record, Records

RUN_ID = "variants"
#: Records that are handed over to Spark at once.
CHUNK = 60_000


class Finding(NamedTuple):
    """What a rule found in a variant."""

    rule_id: str
    severity: str
    topic: str | None
    partition: int | None
    leader_epoch: int | None
    offset_start: int | None
    offset_end: int | None
    message: str


class Audited(NamedTuple):
    """Findings by variant, and what rules raised."""

    findings: Mapping[str, list[Finding]]
    errors: tuple[str, ...]

    def violations(self, variant: str) -> list[Finding]:
        return [one for one in self.findings.get(variant, []) if one.severity == "violation"]


def audited(lake: Lake, variants: Mapping[str, Records], config: Config) -> Audited:
    """Store variants as bronze, parse and audit them once, and read what was found."""
    lake.create([LOG_FILES, LOG_LINES])
    _store(lake, variants)
    parse(lake)
    gold.refresh(lake, config, RUN_ID)
    found: dict[str, list[Finding]] = defaultdict(list)
    for row in lake.read(VIOLATIONS).collect():
        found[row["cluster_id"]].append(Finding(*(row[name] for name in Finding._fields)))
    results = lake.read(RULE_RESULTS).where("reason LIKE '%Error%' OR reason LIKE '%Exception%'").collect()
    return Audited(found, tuple(f"{row['rule_id']}: {row['reason']}" for row in results))


def _store(lake: Lake, variants: Mapping[str, Records]) -> None:
    files: list[dict[str, Any]] = []
    held: list[dict[str, Any]] = []

    def flush() -> None:
        table = pa.Table.from_pylist(held, LOG_LINES.arrow_schema)
        lines = lake.spark.createDataFrame(table).repartition(4)
        lake.append_once(LOG_LINES, lines, f"{RUN_ID}-{len(files)}")
        held.clear()

    for variant, records in variants.items():
        by_file: dict[str, list[Record]] = defaultdict(list)
        for record in records:
            by_file[record.file].append(record)
        for file, lines in by_file.items():
            file_id = md5(f"{variant}/{file}".encode(), usedforsecurity=False).hexdigest()
            held += _lines(variant, file_id, lines)
            files.append(_file(variant, file_id, file, lines))
        if len(held) >= CHUNK:
            flush()
    if held:
        flush()
    lake.append_once(LOG_FILES, lake.spark.createDataFrame(pa.Table.from_pylist(files, LOG_FILES.arrow_schema)), RUN_ID)


def _lines(variant: str, file_id: str, records: Iterable[Record]) -> list[dict[str, Any]]:
    return [
        {
            "file_id": file_id,
            "byte_offset": record.byte_offset,
            "line_no": record.line_no,
            "cluster_id": variant,
            "broker_id": record.broker_id,
            "kind": record.kind,
            "time": record.time_us,
            "level": record.level,
            "logger": record.logger,
            "line_count": record.line_count,
            "problem": None,
            "message": record.message,
        }
        for record in records
    ]


def _file(variant: str, file_id: str, file: str, records: list[Record]) -> dict[str, Any]:
    return {
        "file_id": file_id,
        "path": f"{variant}/{file}",
        "sha256": file_id * 2,
        "size_bytes": sum(len(record.message) for record in records),
        "kind": records[0].kind,
        "layout": "kafka",
        "cluster_id": variant,
        "broker_id": records[0].broker_id,
        "broker_ids": None,
        "broker_id_source": "content",
        "kafka_version": None,
        "mode": None,
        "line_count": sum(record.line_count for record in records),
        "record_count": len(records),
        "first_time": min(record.time_us for record in records),
        "last_time": max(record.time_us for record in records),
        "problem": None,
        "run_id": RUN_ID,
    }
