"""Clusters of a lake, and the one that a name means. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.base.values import UNKNOWN_CLUSTER
from highwater.pipelines.storage.place import Place


class FileCluster(NamedTuple):
    """Cluster columns of a row of ``bronze.log_files``."""

    cluster_id: str | None
    broker_id: int | None
    logged_cluster_id: str | None = None


def list_clusters(files: Iterable[FileCluster]) -> list[str]:
    """Return the ids of clusters with broker logs, sorted. Without any, the ids of all files.

    A file without a cluster is counted as `UNKNOWN_CLUSTER`.
    """
    there = list(files)
    with_brokers = {file.cluster_id or UNKNOWN_CLUSTER for file in there if file.broker_id is not None}
    return sorted(with_brokers or {file.cluster_id or UNKNOWN_CLUSTER for file in there})


def find_cluster(lake: Place, files: Iterable[FileCluster], name: str) -> str:
    """Return the cluster with this name, or with this logged id.

    Raises:
        InputError: the cluster was not found; the message names the known ones.
    """
    there = list(files)
    clusters = list_clusters(there)
    if name in clusters:
        return name
    logged = sorted({file.cluster_id for file in there if file.cluster_id and file.logged_cluster_id == name})
    if len(logged) == 1:
        return logged[0]
    raise InputError(lake, f"has no cluster {name}", f"give --cluster with one of {', '.join(clusters) or 'none'}")


class ClusterInstants(NamedTuple):
    """A time per cluster, us since the epoch. 0 for a cluster without one."""

    by_cluster: Mapping[str, int] = MappingProxyType({})
    others_us: int = 0  #: of the clusters that are not named

    def of(self, cluster_id: str) -> int:
        """Return the time of a cluster. 0 if it has none."""
        return self.by_cluster.get(cluster_id, self.others_us)

    @property
    def latest_us(self) -> int:
        """Return the latest time of all clusters."""
        return max([self.others_us, *self.by_cluster.values()])


def find_latest(instants: Iterable[tuple[str | None, int]]) -> ClusterInstants:
    """Return the latest time of each cluster. An item without a cluster (None) applies to all."""
    by_cluster: dict[str | None, int] = defaultdict(int)
    for cluster_id, us in instants:
        by_cluster[cluster_id] = max(us, by_cluster[cluster_id])
    of_all = by_cluster.pop(None, 0)
    return ClusterInstants({str(cluster_id): max(us, of_all) for cluster_id, us in by_cluster.items()}, of_all)
