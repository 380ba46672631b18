"""Files of data directories below given files and folders, found by their names without opening them. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from highwater.pipelines.data_dir.checkpoints import LEADER_EPOCH, OFFSET_CHECKPOINTS
from highwater.pipelines.data_dir.metadata_log import BOOTSTRAP, LOG, SNAPSHOT
from highwater.pipelines.data_dir.properties import META_PROPERTIES, PARTITION_METADATA
from highwater.pipelines.storage.place import absolute, place_of
from highwater.pipelines.storage.store import store_of
from highwater.schemas.data_files import CURRENT, FOLDER_STATES
from highwater.schemas.topics import METADATA_TOPIC

LOG_SEGMENT = "log-segment"
METADATA_SEGMENT = "metadata-segment"
METADATA_SNAPSHOT = "metadata-snapshot"
BOOTSTRAP_SNAPSHOT = "bootstrap-snapshot"

#: Text files at the top of a data directory, and in the folder of a partition.
_TOP = (*OFFSET_CHECKPOINTS, META_PROPERTIES)
_INNER = (LEADER_EPOCH, PARTITION_METADATA)
#: ``<topic>-<partition>``; a replica that is deleted, moved between directories or not wanted here has a suffix
#: (``UnifiedLog.logDeleteDirName``), and the topic is cut where the name would be too long for a folder.
_FOLDER = re.compile(rf"([a-zA-Z0-9._-]{{1,249}})-(\d{{1,9}})(?:\.[0-9a-f]{{32}}-({'|'.join(FOLDER_STATES[1:])}))?")
_SEGMENT = re.compile(r"(\d{20})\.log")
_SNAPSHOT = re.compile(r"(\d{20})-\d{10}\.checkpoint")
_BOOTSTRAP = "bootstrap.checkpoint"


class DataFile(NamedTuple):
    """A file of a data directory."""

    path: str  #: absolute
    data_dir: str  #: the data directory, absolute
    name: str  #: path within it, without ``.gz``
    kind: str  #: see ``bronze.data_files``
    topic: str | None = None  #: of the partition's folder; None for a file of the whole directory
    partition: int | None = None  #: of the folder
    replica_state: str | None = None  #: what the name of the folder says
    base_offset: int = 0  #: first offset of a segment, end offset of a snapshot

    @property
    def source(self) -> str:
        """Return the part of a metadata log that this file holds."""
        return {METADATA_SNAPSHOT: SNAPSHOT, BOOTSTRAP_SNAPSHOT: BOOTSTRAP}.get(self.kind, LOG)

    @property
    def is_metadata(self) -> bool:
        return self.kind in (METADATA_SEGMENT, METADATA_SNAPSHOT, BOOTSTRAP_SNAPSHOT)


def discover_data(inputs: Sequence[str | os.PathLike[str]]) -> list[DataFile]:
    """Return the data directory files below the given files and folders, sorted by path, without duplicates."""
    by_path: dict[str, DataFile] = {}
    for given in inputs:
        path = absolute(place_of(given))
        store = store_of(path)
        for place in store.walk(path, _ignore_error) if store.is_folder(path) else [path]:
            file = recognise(str(place))
            if file is not None and store.is_file(place):
                by_path[file.path] = file
    return [by_path[path] for path in sorted(by_path)]


def recognise(path: str) -> DataFile | None:
    """Return the data directory file at a path, recognised by name and folder. None if it is none."""
    folder, stored = os.path.split(path)
    name = stored.removesuffix(".gz")
    plain = name.removesuffix(".tmp")
    if plain in _TOP:
        return DataFile(path, folder, name, name)
    if name == _BOOTSTRAP:
        return DataFile(path, folder, name, BOOTSTRAP_SNAPSHOT)
    data_dir, folder_name = os.path.split(folder)
    match = _FOLDER.fullmatch(folder_name)
    if match is None:
        return None
    topic, partition, state = match[1], int(match[2]), match[3] or CURRENT
    file = DataFile(path, data_dir, f"{folder_name}/{name}", name, topic, partition, state)
    if plain in _INNER:
        return file
    is_metadata = topic == METADATA_TOPIC
    if segment := _SEGMENT.fullmatch(name):
        kind = METADATA_SEGMENT if is_metadata else LOG_SEGMENT
        return file._replace(kind=kind, base_offset=int(segment[1]))
    if is_metadata and (snapshot := _SNAPSHOT.fullmatch(name)):
        return file._replace(kind=METADATA_SNAPSHOT, base_offset=int(snapshot[1]))
    return None


def _ignore_error(_: OSError) -> None:
    """Ignore an unreadable folder: `pipelines.bronze.discover` reports it."""
