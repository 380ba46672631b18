"""Rows of days that are not closed, as a condition of Spark's: names of clusters come from logs, and are bound."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql.functions import coalesce, col, greatest, lit, timestamp_micros, when

from pipelines.lake.clusters import ClusterInstants
from pipelines.lake.dated import has_closed_days
from schemas.table import TableSpec


def rows_from_on(spec: TableSpec, instants: ClusterInstants) -> Column:
    """`pipelines.lake.dated.from_on` as a condition; true where no day of the table is closed."""
    if not has_closed_days(spec, instants):
        return lit(True)
    date = greatest(*map(col, spec.dated_by)) if len(spec.dated_by) > 1 else col(spec.dated_by[0])
    since = lit(instants.others_us)
    for name, us in instants.by_cluster.items():
        since = when(col("cluster_id") == lit(name), lit(us)).otherwise(since)
    return coalesce(date >= timestamp_micros(since), lit(True))
