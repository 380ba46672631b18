"""A lake's tables on a disk and in a store: made, written, read, and kept from rivals."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest

from highwater.pipelines.base.errors import InputError, LakeError, LeaseLost
from highwater.pipelines.bronze.discover import discover
from highwater.pipelines.bronze.profile import stored_sha256
from highwater.pipelines.data_dir.discover import discover_data
from highwater.pipelines.lake import delta_commits
from highwater.pipelines.lake.contents import find_tables
from highwater.pipelines.lake.delta_log import find_version, read_log
from highwater.pipelines.lake.parquet import Stored, read_files, read_pieces, split_file
from highwater.pipelines.lake.table_files import build_table, write_rows
from highwater.pipelines.lake.tables import create_table, make_empty, make_lake
from highwater.pipelines.storage.place import Place, Uri, relative
from highwater.pipelines.storage.store import store_of
from highwater.schemas.table import LONG, STRING, TableSpec, column, required
from tests.reading import profiled
from tests.unit.storage.stores import disk as root  # noqa: F401

SPEC = TableSpec(
    "gold",
    "samples",
    "One sample.",
    (required("topic", STRING, "Topic"), column("offset", LONG, "Offset")),
    keys=(),
    bounded_by=("topic",),
)


def put(root: Place, *offsets: int, commit: Callable[..., int] = delta_commits.append, **how: object) -> int:  # noqa: F811
    folder = root / SPEC.layer / SPEC.name
    return commit(
        folder, write_rows(folder, SPEC, build_table(SPEC, [("t", offset) for offset in offsets])), None, **how
    )


def offsets(root: Place) -> list[int]:  # noqa: F811
    folder = root / SPEC.layer / SPEC.name
    files = [folder / file.path for file in read_log(folder).files]
    return sorted(read_files(SPEC, files, ("offset",))["offset"].to_pylist())


def test_what_is_committed_is_read(root: Place) -> None:  # noqa: F811
    folder = root / SPEC.layer / SPEC.name
    assert find_tables(root) == {}
    create_table(folder, SPEC)
    create_table(folder, SPEC)
    assert find_tables(root) == {"gold.samples": folder}
    assert find_version(folder) == 0
    assert [put(root, 1, 2), put(root, 3)] == [1, 2]
    assert offsets(root) == [1, 2, 3]
    assert put(root, 7, commit=delta_commits.replace) == 3
    assert offsets(root) == [7]
    assert read_log(folder).rows == 1
    store = store_of(folder)
    assert sum(name.endswith(".parquet") for name in store.names(folder)) == 3
    (file,) = read_log(folder).files
    assert store.size_bytes(folder / file.path) == file.size_bytes
    (piece,) = split_file(Stored(folder / file.path, file.size_bytes))
    assert [batch.to_pylist() for batch in read_pieces(SPEC, piece, ("offset",))] == [[{"offset": 7}]]


def test_a_key_that_readers_would_take_for_escaped_is_refused() -> None:
    with pytest.raises(InputError, match="has a %"):
        make_lake(Uri("s3a", "bucket", "a%20lake"))


def test_no_commit_is_written_over(root: Place) -> None:  # noqa: F811
    folder = root / SPEC.layer / SPEC.name
    create_table(folder, SPEC)
    put(root, 1)
    before = store_of(root).read(folder / "_delta_log" / f"{1:020}.json")

    def rival() -> None:
        put(root, 2)

    with pytest.raises(LakeError, match="was written by another process"):
        put(root, 3, commit=delta_commits.replace, fence=rival)
    with pytest.raises(LakeError, match="version 3 was written by another process"):
        make_empty(folder, SPEC, "because", rival, None)
    # What only adds does not mind.
    put(root, 4, fence=rival)
    assert offsets(root) == [1, 2, 2, 2, 4]
    assert store_of(root).read(folder / "_delta_log" / f"{1:020}.json") == before


def test_nothing_is_committed_behind_a_fence(root: Place) -> None:  # noqa: F811
    create_table(root / SPEC.layer / SPEC.name, SPEC)

    def closed() -> None:
        raise LeaseLost(root, "another run has taken its lease")

    with pytest.raises(LeaseLost):
        put(root, 1, fence=closed)
    assert find_version(root / SPEC.layer / SPEC.name) == 0


def test_logs_are_found_and_read(root: Place) -> None:  # noqa: F811
    line = b"[2026-11-20 15:34:05,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n"
    store = store_of(root)
    names = ("1/server.log", "1/server.log.1.gz", "1/data/orders-0/leader-epoch-checkpoint", "1/notes.txt")
    for name in names:
        store.make_folder((root / name).parent)
        text = b"nothing of Kafka's\n" if name.endswith("txt") else line
        store.replace(root / name, gzip.compress(text) if name.endswith("gz") else text)
    found = discover([str(root)])
    assert [path.removeprefix(f"{root}/") for path in found.files] == list(names[:2])
    profiles = [part for path in found.files for part in profiled(path, "UTC", 1 << 20)]
    assert [item.line_count for item in profiles] == [1, 1]
    assert len({item.content_id for item in profiles}) == 1
    assert [item.sha256 for item in profiles] == [stored_sha256(path) for path in found.files]
    (data,) = discover_data([root])
    assert (data.path, data.topic, data.partition) == (str(root / names[2]), "orders", 0)
    assert discover([root / names[0]]).files == found.files[:1]
    with pytest.raises(InputError, match="no such file"):
        discover([root / "absent"])
    with pytest.raises(InputError, match="no log files"):
        discover([root / "1" / "data"])
    assert sorted(relative(file, root) for file in store.walk(root)) == sorted(names)
