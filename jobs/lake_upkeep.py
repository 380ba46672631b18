"""What maintenance asks of Delta: few large files instead of many small ones, and no files that no version needs."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.delta_log import REMOVED_KEPT
from pipelines.lake import Lake
from pipelines.lake_tables import sql_name
from pipelines.storage.place import Place, Uri
from pipelines.storage.store import store_of

#: Clustered files that make up so much are settled: OPTIMIZE rewrites them no more. Delta's own default, 100 GB, has it
#: rewrite most tables of a lake as a whole each time.
_SETTLED_CUBE = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.threshold"
_SETTLED_CUBE_BYTES = 1 << 30


def compact(lake: Lake, path: Place) -> None:
    """Rewrite a table's small files as few large ones, in its clustering; rows and change feed stay as they are."""
    with lake.settings({_SETTLED_CUBE: str(_SETTLED_CUBE_BYTES)}), lake.through_delta(path) as written:
        lake.spark.sql(f"OPTIMIZE {sql_name(written)}")


def vacuum(lake: Lake, path: Place, retention_hours: int, unneeded: Iterable[Place]) -> None:
    """Remove the files that no version within the retention needs, and those that no version names.

    Args:
        unneeded: which those are, by the table's log: in a store that is all that has to be done.
    """
    if isinstance(path, Uri):
        for file in unneeded:
            store_of(file).remove(file)
        return
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


def remember_removed(lake: Lake, path: Place, hours: int) -> None:
    """Have Delta remember removed files for so long: VACUUM cannot keep what the log has forgotten."""
    with lake.through_delta(path) as written:
        text = f"ALTER TABLE {sql_name(written)} SET TBLPROPERTIES ('{REMOVED_KEPT}' = 'interval {hours} hours')"
        lake.spark.sql(text)
