"""What maintenance asks of Delta: few large files instead of many small ones."""

from __future__ import annotations

from typing import Final

from delta.tables import DeltaTable

from pipelines.lake.lake import Lake
from pipelines.lake.tables import hadoop_path
from schemas.table import TableSpec

#: Clustered files that make up so much are settled: OPTIMIZE rewrites them no more. Delta's own default, 100 GB, has it
#: rewrite most tables of a lake as a whole each time.
_SETTLED_CUBE: Final = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.threshold"
_SETTLED_CUBE_BYTES: Final = 1 << 30


def compact(lake: Lake, spec: TableSpec) -> None:
    """Rewrite a table's small files as few large ones, in its clustering; rows and change feed stay as they are.

    Raises:
        ForeignTable: the table has what Delta would evaluate and nobody declared.
    """
    with lake.settings({_SETTLED_CUBE: str(_SETTLED_CUBE_BYTES)}), lake.through_delta(spec) as written:
        DeltaTable.forPath(lake.spark, hadoop_path(written)).optimize().executeCompaction()
