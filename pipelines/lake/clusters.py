"""Which clusters a lake has, and which one is meant. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from pipelines.base.errors import InputError
from pipelines.base.values import UNKNOWN_CLUSTER
from pipelines.storage.place import Place


class FileCluster(NamedTuple):
    """A row of ``bronze.log_files``, as far as it tells clusters."""

    cluster_id: str | None
    broker_id: int | None
    logged_cluster_id: str | None = None


def clusters_of(files: Iterable[FileCluster]) -> list[str]:
    """The clusters that files of brokers are of, in order; where no file has a broker, those of all files.

    A file that nothing places is of no cluster by itself.
    """
    there = list(files)
    with_brokers = {file.cluster_id or UNKNOWN_CLUSTER for file in there if file.broker_id is not None}
    return sorted(with_brokers or {file.cluster_id or UNKNOWN_CLUSTER for file in there})


def cluster_named(lake: Place, files: Iterable[FileCluster], name: str) -> str:
    """The cluster that is called so in a lake; of one whose folders have a name, its id does as well.

    Raises:
        InputError: there is no such cluster; names those that there are.
    """
    there = list(files)
    clusters = clusters_of(there)
    if name in clusters:
        return name
    logged = sorted({file.cluster_id for file in there if file.cluster_id and file.logged_cluster_id == name})
    if len(logged) == 1:
        return logged[0]
    raise InputError(lake, f"has no cluster {name}", f"give --cluster with one of {', '.join(clusters) or 'none'}")


class ClusterInstants(NamedTuple):
    """An instant per cluster, microseconds; 0: none."""

    by_cluster: Mapping[str, int] = MappingProxyType({})
    others_us: int = 0  #: of the clusters that are not named

    def of(self, cluster_id: str) -> int:
        """The instant of a cluster."""
        return self.by_cluster.get(cluster_id, self.others_us)

    @property
    def latest_us(self) -> int:
        """The latest of all."""
        return max([self.others_us, *self.by_cluster.values()])


def latest(instants: Iterable[tuple[str | None, int]]) -> ClusterInstants:
    """The latest instant of each cluster; one without a cluster is of all."""
    by_cluster: dict[str | None, int] = defaultdict(int)
    for cluster_id, us in instants:
        by_cluster[cluster_id] = max(us, by_cluster[cluster_id])
    of_all = by_cluster.pop(None, 0)
    return ClusterInstants({str(cluster_id): max(us, of_all) for cluster_id, us in by_cluster.items()}, of_all)
