"""``highwater expire``: drop old days; reports of the days that stay do not change."""

from __future__ import annotations

from datetime import UTC, datetime

from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.lakes import list_tables
from highwater.pipelines.base.config import Config
from highwater.pipelines.base.console import Console
from highwater.pipelines.base.values import instant
from highwater.pipelines.lake.contents import require_own
from highwater.pipelines.lake.writer import hold_lake
from highwater.pipelines.storage.machine_faults import translate_faults
from highwater.pipelines.storage.place import Place
from highwater.pipelines.upkeep.expiry import ExpiryPlan, count_rows, plan_expiry, resolve_keep
from highwater.pipelines.upkeep.expiry import expire as drop_days
from highwater.pipelines.upkeep.upgrade import require_up_to_date, upgrade

_COLUMNS = ("table", "rows")


def expire(
    config: Config, console: Console, root: Place, keep: str | None, cluster: str | None, dry_run: bool
) -> ExitCode:
    """Drop the days that are older than the retention of their layer. Starts no Spark.

    Args:
        keep: retention such as ``90d``, for layers that ``[retention]`` does not name.
        cluster: name or id of the cluster that loses days. None for all clusters.
        dry_run: print the days and drop nothing.

    Raises:
        ConfigError: no retention is configured, or a layer has a shorter retention than the layer that it is made from.
        InputError: the lake or the cluster does not exist, or dropping days would change the results of later days.
    """
    days, now = resolve_keep(keep, _list_by_layer(config)), datetime.now(UTC)
    list_tables(root)
    if dry_run:
        require_own(root)
        require_up_to_date(root)
        plan = plan_expiry(root, days, now, cluster)
        _tell(console, plan, [] if plan is None else count_rows(root, plan), "would be")
        return ExitCode.CLEAN
    with hold_lake(root, "expire", config.session, console.note) as fence, translate_faults(root, []):
        for what in upgrade(root, fence):
            console.note(f"  {what}")
        plan = plan_expiry(root, days, now, cluster)
        _tell(console, plan, [] if plan is None else drop_days(root, plan, now, fence), "are")
    return ExitCode.CLEAN


def _list_by_layer(config: Config) -> dict[str, str | None]:
    retention = config.retention
    return {"bronze": retention.bronze_keep, "silver": retention.silver_keep, "gold": retention.gold_keep}


def _tell(console: Console, plan: ExpiryPlan | None, counts: list[tuple[str, int]], verb: str) -> None:
    if plan is None:
        console.note("  nothing to do: nothing is so old")
        return
    for cluster_id, problem in plan.refused.items():
        console.warn(f"cluster {cluster_id} keeps its days: {problem}")
    of_clusters = f"of {'cluster' if len(plan.anchors) == 1 else 'clusters'} {', '.join(plan.anchors)}"
    closed = f"{instant(plan.cuts.closed_us):%Y-%m-%d}"
    console.note(f"  days {of_clusters} before {closed} {verb} closed: their answers stay as they are")
    if counts:
        console.table(_COLUMNS, counts)
    else:
        console.note("  no row is so old")
