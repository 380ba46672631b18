"""Export what the audit reads of some partitions of a lake, for tests that need no Spark.

python tests/data/export_facts.py LAKE tests/data/facts.jsonl.gz CLUSTER/TOPIC/PARTITION ...

A line that names the partition and the version of its brokers comes before its facts, which stand in the order in which
the rules take them; values that are null are left out.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from pyspark.sql import functions as F

from highwater.pipelines.base.config import load_config
from highwater.pipelines.cluster.stage import collect_premises
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.rules.facts.columns import FACT_TYPES, KEY, ORDER
from highwater.pipelines.rules.facts.selection import selected
from highwater.pipelines.rules.facts.timeline import facts
from highwater.pipelines.spark.session import build_session
from highwater.schemas.audit_facts import Fact


def main(lake_dir: Path, target: Path, places: list[str]) -> None:
    config = load_config()
    spark = build_session(config, "export facts")
    lake = Lake(spark, lake_dir)
    premises = collect_premises(lake, config.replay.settle_ms * 1000)
    versions = premises.contexts.versions
    rows = facts(lake, premises)
    assert rows is not None, "no facts"
    lines = []
    for place in places:
        cluster_id, topic, partition = place.rsplit("/", 2)
        here = rows.where(
            (F.col("cluster_id") == cluster_id) & (F.col("topic") == topic) & (F.col("partition") == int(partition))
        )
        version = {str(broker): text for (cluster, broker), text in versions.items() if cluster == cluster_id}
        lines.append({"cluster_id": cluster_id, "topic": topic, "partition": int(partition), "versions": version})
        sorted_rows = here.orderBy(*KEY, *ORDER).select(*FACT_TYPES).collect()
        for fact in selected(Fact._make(row) for row in sorted_rows):
            lines.append({name: value for name, value in fact._asdict().items() if value is not None})
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    # No time in the header: exporting twice gives the same bytes.
    target.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    spark.stop()
    print(f"{len(lines)} lines, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
