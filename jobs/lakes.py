"""Lakes that verbs are given."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from pipelines.clusters import ClusterInstants
from pipelines.errors import InputError
from pipelines.lake_contents import find_tables
from pipelines.lake_program import require_no_newer
from pipelines.storage.place import Place


def tables_in(root: Place) -> dict[str, Place]:
    """Folders of a lake's tables by full name.

    Raises:
        InputError: there is no lake, or a newer version of highwater wrote it.
    """
    require_no_newer(root)
    tables = find_tables(root)
    if not tables:
        raise no_lake(root)
    return tables


def no_lake(root: Place) -> InputError:
    """There is no lake in a folder."""
    return InputError(root, "is no lake", "ingest logs first, or name the lake with --lake")


def closed_days(root: Place, closed: ClusterInstants, cluster_id: str | None) -> Iterator[tuple[str, str]]:
    """Which days are closed, of one cluster or of each: the lake, and what a report says of it."""
    instants = [(f" of cluster {name}", us) for name, us in sorted(closed.by_cluster.items())]
    if cluster_id is not None:
        instants = [(f" of cluster {cluster_id}", closed.of(cluster_id))]
    elif closed.others_us:
        instants.append((" of the other clusters" if instants else "", closed.others_us))
    for of_cluster, us in instants:
        if us:
            closing = f"days{of_cluster} before {datetime.fromtimestamp(us // 1_000_000, UTC):%Y-%m-%d} are closed"
            kept = "their lines were dropped, and what was found in them stays"
            asked = "rules were asked of later lines, and of what is as small as metadata"
            yield str(root), f"{closing}: {kept}; {asked}"
