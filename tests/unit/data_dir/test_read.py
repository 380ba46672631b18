"""What a worker makes of files: rows, problems with place and remedy, each content once."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa

from highwater.pipelines.base.blobs import unpack
from highwater.pipelines.bronze.data_dir_reader import UNREADABLE, FileReader, Owned, units
from highwater.pipelines.data_dir.discover import discover_data
from highwater.pipelines.data_dir.owner import Owner
from tests.unit.data_dir.encoder import batch, change, ints, partition, topic

SEGMENT = "00000000000000000000.log"
Tables = dict[str, list[dict]]


def write(root: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return root


def read(root: Path, known: frozenset[str] = frozenset()) -> Tables:
    """Owners are the folders' names here."""
    files = discover_data([root])
    owned = [Owned(file, Owner("C", int(Path(file.data_dir).name), file.data_dir)) for file in files]
    reader = FileReader(known, "r1")
    blobs = [blob for unit in units(owned) for blob in reader.read(unit)] + list(reader.rest())
    tables: Tables = {}
    for blob in blobs:
        rows = pa.Table.from_batches(list(unpack(iter([blob])))).to_pylist()
        assert blob.column("row_count").to_pylist() == [len(rows)]
        tables.setdefault(blob.column("table")[0].as_py(), []).extend(rows)
    return tables


def test_tables(tmp_path: Path) -> None:
    segment = batch(0, [(b"a", b"b")], 3) + batch(1, [(b"c", b"d")] * 2, 4)
    log = batch(0, [(None, topic("t"))]) + batch(1, [(None, partition(0, (1,)))])
    write(
        tmp_path / "1",
        {
            "replication-offset-checkpoint": b"0\n1\nt 0 3\n",
            "t-0/leader-epoch-checkpoint": b"0\n2\n3 0\n4 1\n",
            f"t-0/{SEGMENT}.gz": segment,
            f"__cluster_metadata-0/{SEGMENT}": log,
            "__cluster_metadata-0/00000000000000000002.log": batch(2, [(None, change(0, {0: ints(())}))]),
        },
    )
    tables = read(tmp_path)
    ids = {row["name"]: row["file_id"] for row in tables["data_files"]}
    assert {row["row_count"] for row in tables["data_files"] if row["name"].startswith("t-0")} == {2}
    assert all(row["problem"] is None and row["run_id"] == "r1" for row in tables["data_files"])
    epochs = [row for row in tables["checkpoints"] if row["file_id"] == ids["t-0/leader-epoch-checkpoint"]]
    assert [
        (row["topic"], row["partition"], row["leader_epoch"], row["offset"], row["entry_no"]) for row in epochs
    ] == [
        ("t", 0, 3, 0, 0),
        ("t", 0, 4, 1, 1),
    ]
    first, second = tables["log_batches"]
    assert (first["broker_id"], first["topic"], first["leader_epoch"], first["byte_offset"]) == (1, "t", 3, 0)
    assert segment[second["byte_offset"] :] == batch(1, [(b"c", b"d")] * 2, 4)
    history = tables["metadata_records"]
    assert [(row["offset"], row["record"], row["isr"], row["partition_epoch"]) for row in history] == [
        (0, "TopicRecord", None, None),
        (1, "PartitionRecord", [1], 0),
        (2, "PartitionChangeRecord", [], 1),
    ]


def test_replicas_are_witnesses_each(tmp_path: Path) -> None:
    for broker in "12":
        write(tmp_path / broker, {f"t-0/{SEGMENT}": batch(0, [(b"a", b"b")])})
    tables = read(tmp_path)
    assert sorted(row["broker_id"] for row in tables["log_batches"]) == [1, 2]
    assert len({row["file_id"] for row in tables["data_files"]}) == 2
    assert len({row["sha256"] for row in tables["data_files"]}) == 1


def test_what_is_known_is_not_read_again(tmp_path: Path) -> None:
    files = {
        "meta.properties": b"broker.id=1\nversion=0\n",
        f"__cluster_metadata-0/{SEGMENT}": batch(0, [(None, topic("t"))]) + batch(1, [(None, partition(0, (1,)))]),
    }
    write(tmp_path / "1", files)
    known = frozenset(row["file_id"] for row in read(tmp_path)["data_files"])
    assert read(tmp_path, known) == {}
    # A new segment means what the known one led to.
    write(
        tmp_path / "1", {"__cluster_metadata-0/00000000000000000002.log": batch(2, [(None, change(0, {0: ints(())}))])}
    )
    tables = read(tmp_path, known)
    assert len(tables["data_files"]) == 1
    assert [(row["offset"], row["topic"], row["leader"]) for row in tables["metadata_records"]] == [(2, "t", 1)]


def test_problems_name_the_place_and_the_remedy(tmp_path: Path) -> None:
    good = batch(0, [(b"a", b"b")])
    bad = good[:-1] + b"x"
    torn = gzip.compress(batch(0, [(b"a", bytes(range(256)) * 9)]))[:-20]
    write(
        tmp_path / "1",
        {
            "cleaner-offset-checkpoint": b"0\n9\nt 0",
            "recovery-point-offset-checkpoint.tmp": b"0\n0\n",
            f"t-0/{SEGMENT}": good + good[:-5],
            f"t-1/{SEGMENT}": bad,
        },
    )
    (tmp_path / "1/t-2").mkdir()
    (tmp_path / f"1/t-2/{SEGMENT}.gz").write_bytes(torn)
    tables = read(tmp_path)
    said = {row["name"]: row["problem"] for row in tables["data_files"]}
    remedy = "copy the file again, or look at it on the broker"
    assert said["cleaner-offset-checkpoint"] == (
        "line 3 (byte 4): 2 words where topic, partition and offset belong; the line is cut: no newline at its end; "
        f"line 4 (byte 7): 9 entries expected and 1 found: the file is cut; {remedy}"
    )
    assert said["recovery-point-offset-checkpoint.tmp"] == f"left over by a write that was interrupted; {remedy}"
    assert said[f"t-0/{SEGMENT}"] == (
        f"partial batch at byte {len(good)}: {len(good) - 5} of {len(good)} bytes; {remedy}"
    )
    assert "batch at byte 0: CRC 0x" in said[f"t-1/{SEGMENT}"]
    assert "partial batch at byte 0" in said[f"t-2/{SEGMENT}"]
    assert "truncated gzip" in said[f"t-2/{SEGMENT}"]
    assert [row["crc_ok"] for row in tables["log_batches"] if row["partition"] == 1] == [False]


def test_a_file_that_went_away(tmp_path: Path) -> None:
    write(tmp_path / "1", {"meta.properties": b"broker.id=1\nversion=0\n", f"t-0/{SEGMENT}": batch(0, [(b"a", b"b")])})
    files = [Owned(file, Owner("C", 1, "d")) for file in discover_data([tmp_path])]
    (tmp_path / f"1/t-0/{SEGMENT}").unlink()
    reader = FileReader((), "r")
    blobs = [blob for unit in units(files) for blob in reader.read(unit)] + list(reader.rest())
    found = {blob.column("table")[0].as_py(): blob for blob in blobs}
    assert found.keys() == {UNREADABLE, "checkpoints", "data_files"}
    path, why = next(unpack([found[UNREADABLE]])).to_pylist()[0].values()
    assert (Path(path).name, why.split("(")[0]) == (SEGMENT, "cannot be read ")
