"""What maintenance asks of Delta: few large files instead of many small ones, and no files that no version needs."""

from __future__ import annotations

from pathlib import Path

from pipelines.delta_log import REMOVED_KEPT
from pipelines.lake import Lake
from pipelines.lake_tables import sql_name

#: Clustered files that make up so much are settled: OPTIMIZE rewrites them no more. Delta's own default, 100 GB, has it
#: rewrite most tables of a lake as a whole each time.
_SETTLED_CUBE = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.threshold"
_SETTLED_CUBE_BYTES = 1 << 30


def compact(lake: Lake, path: Path) -> None:
    """Rewrite a table's small files as few large ones, in its clustering; rows and change feed stay as they are."""
    with lake.settings({_SETTLED_CUBE: str(_SETTLED_CUBE_BYTES)}):
        lake.spark.sql(f"OPTIMIZE {sql_name(path)}")


def vacuum(lake: Lake, path: Path, retention_hours: int) -> None:
    """Remove the files that no version within the retention needs, and those that no version names."""
    # Delta refuses less than a table's own retention; what is too little is the caller's decision here.
    settings = {
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        # Else Delta 4.4 takes the table's own retention, whatever is asked for.
        "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled": "false",
        # Delta lists a folder in as many tasks as this says, 10,000 by default: 50 s for a table of ten files.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }
    with lake.settings(settings):
        lake.spark.sql(f"VACUUM {sql_name(path)} FULL RETAIN {retention_hours} HOURS")


def remember_removed(lake: Lake, path: Path, hours: int) -> None:
    """Have Delta remember removed files for so long: VACUUM cannot keep what the log has forgotten."""
    lake.spark.sql(f"ALTER TABLE {sql_name(path)} SET TBLPROPERTIES ('{REMOVED_KEPT}' = 'interval {hours} hours')")
