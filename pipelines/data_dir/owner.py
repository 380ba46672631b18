"""Owner of a data directory: by ``meta.properties``, else by the logs near it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import NamedTuple

from highwater.pipelines.base.values import UNKNOWN_CLUSTER


class OwnedLog(NamedTuple):
    """A log file whose broker is known."""

    path: str
    cluster_id: str
    broker_id: int | None


class Owner(NamedTuple):
    """Owner of a data directory."""

    cluster_id: str
    broker_id: int | None
    directory: str  #: its ``directory.id``, or its path
    problem: str | None = None  #: what is not known and what to do

    def in_cluster(self, name: str) -> Owner:
        """Return the owner with `name` as its cluster, if the files name no cluster."""
        if self.cluster_id != UNKNOWN_CLUSTER:
            return self
        return self._replace(cluster_id=name, problem=self.problem if self.broker_id is None else None)


def find_owner(
    data_dir: str,
    inputs: Iterable[str],
    broker_id: int | None,
    cluster_id: str | None,
    directory_id: str | None,
    logs: Sequence[OwnedLog],
) -> Owner:
    """Return cluster and broker that own a data directory.

    Args:
        data_dir: its absolute path.
        inputs: absolute paths of the inputs. Logs below and near them are considered, nearest first.
        broker_id: from ``meta.properties``. None if missing.
        cluster_id: from ``meta.properties``, or the configured name. Missing in 0.10.0 and before.
        directory_id: from ``meta.properties``. Missing before 3.7.
        logs: log files that were read.
    """
    directory = directory_id or data_dir
    if broker_id is not None and cluster_id is not None:
        return Owner(cluster_id, broker_id, directory)
    for folder in _list_folders(data_dir, inputs):
        near = [log for log in logs if PurePath(log.path).is_relative_to(folder) and log.broker_id is not None]
        nodes = {(log.cluster_id, log.broker_id) for log in near if broker_id in (None, log.broker_id)}
        nodes = {pair for pair in nodes if cluster_id in (None, pair[0])}
        sure = {pair for pair in nodes if pair[0] != UNKNOWN_CLUSTER} or nodes
        if len(sure) == 1:
            found_cluster, found_broker = next(iter(sure))
            return Owner(found_cluster, found_broker, directory)
        if sure or (near and broker_id is None):
            break
    lacking = "cluster" if broker_id is not None else "broker"
    problem = f"nothing tells its {lacking}: copy meta.properties, or the broker's server.log, beside it"
    return Owner(cluster_id or UNKNOWN_CLUSTER, broker_id, directory, problem)


def _list_folders(data_dir: str, inputs: Iterable[str]) -> list[PurePath]:
    """Return the folders around a data directory, nearest first, up to the folder of the input."""
    here = PurePath(data_dir)
    roots = [PurePath(given) for given in inputs]
    # The folder of a partition, or a file, may be what was given.
    tops = [
        here if root.is_relative_to(here) else root
        for root in roots
        if root.is_relative_to(here) or here.is_relative_to(root)
    ]
    limit = min((len(top.parent.parts) for top in tops), default=len(here.parts))
    return [folder for folder in (here, *here.parents) if len(folder.parts) >= limit]
