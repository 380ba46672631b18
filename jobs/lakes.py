"""Lakes that verbs are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from datetime import UTC, datetime

import pyarrow.compute as pc

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.base.values import iso_utc
from highwater.pipelines.lake.clusters import ClusterInstants, FileCluster, list_clusters
from highwater.pipelines.lake.contents import find_tables
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.program import require_known_version
from highwater.pipelines.report.small_tables import make_bounds
from highwater.pipelines.storage.place import Place
from highwater.schemas.bronze import LOG_FILES


def list_tables(root: Place) -> dict[str, Place]:
    """Return the folders of a lake's tables by full name.

    Raises:
        InputError: the lake does not exist, or a newer version of highwater wrote it.
    """
    require_known_version(root)
    tables = find_tables(root)
    if not tables:
        raise explain_no_lake(root)
    return tables


def explain_no_lake(root: Place) -> InputError:
    """Return the error for a folder that does not contain a lake."""
    return InputError(root, "is not a lake", "ingest logs first, or name the lake with --lake")


def list_closed_days(root: Place, closed: ClusterInstants, cluster_id: str | None) -> Iterator[tuple[str, str]]:
    """Yield (lake's path, sentence) about days that no run changes, per cluster.

    Args:
        closed: time before which days are closed, by cluster.
        cluster_id: the only cluster to report. None for all clusters.
    """
    instants = [(f" of cluster {name}", us) for name, us in sorted(closed.by_cluster.items())]
    if cluster_id is not None:
        instants = [(f" of cluster {cluster_id}", closed.of(cluster_id))]
    elif closed.others_us:
        instants.append((" of the other clusters" if instants else "", closed.others_us))
    for of_cluster, us in instants:
        if us:
            closing = f"days{of_cluster} before {datetime.fromtimestamp(us // 1_000_000, UTC):%Y-%m-%d} are closed"
            what_stays = "their lines were dropped, and what was found in them stays"
            asked = "rules were asked of later lines, and of what is as small as metadata"
            yield str(root), f"{closing}: {what_stays}; {asked}"


def list_cluster_files(lake: Lake) -> list[FileCluster]:
    """Return the cluster columns of the log files of a lake."""
    names = ("cluster_id", "broker_id", "logged_cluster_id")
    return [FileCluster(*map(row.get, names)) for row in lake.rows(LOG_FILES, *names).to_pylist()]


def choose_cluster(lake: Lake, given: Set[str], note: Callable[[str], None]) -> str | None:
    """Return the cluster of the given logs if the lake also has others. None to report all clusters.

    Args:
        given: cluster ids of the given logs.
        note: receives a message if the lake has other clusters.

    Raises:
        InputError: the logs are of several clusters, and the lake has others.
    """
    others = sorted(set(list_clusters(list_cluster_files(lake))) - given)
    if not given or not others:
        return None
    listed = ", ".join(others)
    if len(given) > 1:
        holds = f"holds logs of cluster {listed} and of the given {', '.join(sorted(given))}"
        raise InputError(lake.root, holds, "give a lake of its own, or highwater report --cluster for each")
    (cluster_id,) = given
    note(f"  the report is of cluster {cluster_id}, whose logs were given; the lake holds cluster {listed}, too")
    return cluster_id


def explain_no_lines(lake: Lake, since: datetime | None, until: datetime | None, cluster_id: str | None) -> str | None:
    """Return why a time range has no log line: it begins after the last or ends before the first. None if it has."""
    asked = make_bounds(since, until)
    where = None if cluster_id is None else pc.field("cluster_id") == cluster_id
    rows = lake.rows(LOG_FILES, "first_time", "last_time", where=where)
    first_us, last_us = (
        bound.value if (bound := of(rows[name])).is_valid else None
        for of, name in ((pc.min, "first_time"), (pc.max, "last_time"))
    )
    if asked.since_us is not None and last_us is not None and asked.since_us > last_us:
        return f"--from {iso_utc(asked.since_us)} is after the last line, {iso_utc(last_us)}: nothing can be judged"
    if asked.until_us is not None and first_us is not None and asked.until_us <= first_us:
        return f"--until {iso_utc(asked.until_us)} is before the first line, {iso_utc(first_us)}: nothing can be judged"
    return None
