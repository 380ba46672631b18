"""Cuts a few partitions out of a lake, as a lake of its own that inquiries can be asked of: how `lake/` was made.

    python -m tests.data.cut_lake LAKE tests/data/lake CLUSTER/TOPIC-PARTITION...

Lists of other partitions in fetches are left out, and so are all lines that none of the rows below points at.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from highwater.pipelines.lake.contents import find_tables
from highwater.pipelines.lake.delta_log import read_log
from highwater.pipelines.lake.reader import LakeReader

_OF_PLACE = "(cluster_id, topic, partition) IN (SELECT * FROM place)"
_OF_CLUSTER = "cluster_id IN (SELECT cluster_id FROM place)"
_ASKED = """list_has_any(list_transform(partitions, lambda p: (p.topic, p.partition)),
                             (SELECT list((topic, partition)) FROM place))"""
_OF_REQUESTS = f"{_OF_CLUSTER} AND {_ASKED}"
_SHOWN = f"""(file_id, byte_offset) IN (
    SELECT (file_id, byte_offset) FROM silver_leader_and_isr WHERE {_OF_PLACE} AND role <> 'metadata'
    UNION SELECT (file_id, byte_offset) FROM silver_truncations WHERE {_OF_PLACE}
    UNION SELECT (file_id, byte_offset) FROM silver_high_watermarks WHERE {_OF_PLACE} AND source = 'loaded'
    UNION SELECT (file_id, byte_offset) FROM gold_evidence WHERE finding_id IN (
        SELECT finding_id FROM gold_violations WHERE {_OF_PLACE}))"""

#: What is kept of each table, and the columns that are emptied.
TABLES: dict[str, tuple[str, str]] = {
    "bronze.log_files": (_OF_CLUSTER, ""),
    "bronze.log_lines": (_SHOWN, ""),
    **dict.fromkeys(
        (
            "silver.leader_and_isr",
            "silver.replica_fetches",
            "silver.appends",
            "silver.truncations",
            "silver.isr_changes",
            "silver.metadata_records",
            "silver.checkpoints",
            "silver.log_batches",
            "gold.violations",
            "gold.failovers",
            "gold.replica_truncations",
            "gold.availability",
            "gold.isr_timeline",
        ),
        (_OF_PLACE, ""),
    ),
    "silver.high_watermarks": (f"{_OF_PLACE} AND source NOT IN ('skipped', 'under_min_isr')", "replica_end_offsets"),
    "silver.fetch_requests": (f"{_OF_CLUSTER} AND replica_id >= 0", "partitions forgotten responses"),
    "silver.produce_requests": (_OF_REQUESTS, ""),
    "silver.requests": ("false", ""),
    "silver.controller_events": (f"{_OF_CLUSTER} AND event = 'topic_deleted'", ""),
    "silver.broker_lifecycle": (_OF_CLUSTER, ""),
    "gold.delayed_operations": (f"operation = 'produce' AND {_OF_REQUESTS}", ""),
    "gold.request_phases": (
        f"""{_OF_CLUSTER} AND api = 'PRODUCE' AND (broker_id, connection, correlation_id) IN (
            SELECT (broker_id, connection, correlation_id) FROM silver_produce_requests WHERE {_OF_REQUESTS})""",
        "",
    ),
    "gold.evidence": (f"finding_id IN (SELECT finding_id FROM gold_violations WHERE {_OF_PLACE})", ""),
    "gold.rule_results": ("true", ""),
}


def main(arguments: list[str]) -> None:
    """Cut and write."""
    source, target, *places = arguments
    tables = find_tables(Path(source))
    reader = LakeReader(Path(source), tables)
    values = []
    for place in places:
        cluster_id, _, partition = place.partition("/")
        topic, _, number = partition.rpartition("-")
        values.append(f"('{cluster_id}', '{topic}', {number}::int)")
    reader.connection.execute(
        f"CREATE TABLE place AS SELECT * FROM (VALUES {', '.join(values)}) t(cluster_id, topic, partition)"
    )
    for full_name, (where, emptied) in TABLES.items():
        _write(reader, full_name, tables[full_name], Path(target), where, emptied.split())


def _write(reader: LakeReader, full_name: str, path: Path, target: Path, where: str, emptied: list[str]) -> None:
    folder = target / full_name.replace(".", "/")
    (folder / "_delta_log").mkdir(parents=True)
    replaced = ", ".join(f"[] AS {name}" for name in emptied)
    for named, column in (("bronze.log_files", "path"), ("gold.evidence", "file")):
        if full_name == named:
            replaced = f"regexp_replace({column}, '.*corpora/', '') AS {column}"
    columns = f"* REPLACE ({replaced})" if replaced else "*"
    alias = full_name.replace(".", "_")
    file = folder / "part-0.parquet"
    reader.rows(f"SELECT 1 FROM {alias} WHERE {where} LIMIT 0")
    reader.connection.execute(
        f"COPY (SELECT {columns} FROM {alias} WHERE {where}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)"
    )
    metadata = {
        "schemaString": json.dumps(read_log(path).schema),
        "configuration": {},
        "partitionColumns": [],
        "format": {"provider": "parquet", "options": {}},
        "id": full_name,
    }
    added = {
        "path": file.name,
        "size": file.stat().st_size,
        "partitionValues": {},
        "dataChange": True,
        "modificationTime": 0,
    }
    actions = [{"metaData": metadata}, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"add": added}]
    log = folder / "_delta_log" / f"{0:020}.json"
    log.write_text("".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
