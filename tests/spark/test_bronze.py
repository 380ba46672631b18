"""Ingest end to end: trees of files in, bronze tables out, and again."""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from highwater.pipelines.base.config import IngestConfig
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.bronze import ingest as module
from highwater.pipelines.bronze.ingest import IngestSummary, ingest_batches, read_inputs
from highwater.pipelines.bronze.profile import known_files
from highwater.pipelines.bronze.register import LoggedBroker
from highwater.pipelines.lake.lake import Lake
from highwater.schemas.bronze import LOG_FILES, LOG_LINES
from highwater.schemas.table import TableSpec
from tests.ingests import ingest

A, B = "W-CQybfSRP-OafW0EWRB0Q", "StFVvc9XQEetSc4jeax1NA"
CONFIG = IngestConfig(
    timezone="UTC",
    log_format="",
    cluster="",
    clusters={},
    record_bytes_max=1 << 20,
    batch_mb=0,
    include=["*"],
    exclude=["*-gc.log*"],
)


def server(broker: int, cluster: str = A, extra: str = "") -> bytes:
    at = "[2026-11-20 15:33:21,101]"
    return (
        f"{at} INFO KafkaConfig values: \n\tbroker.id = {broker}\n"
        f"\tlisteners = PLAINTEXT://127.0.0.1:{19092 + broker}\n"
        "\tzookeeper.connect = 127.0.0.1:12181\n (kafka.server.KafkaConfig)\n"
        f"{at} INFO Cluster ID = {cluster} (kafka.server.KafkaServer)\n"
        f"{at} INFO Kafka version: 2.8.2 (org.apache.kafka.common.utils.AppInfoParser)\n"
        f"{at} WARN [ReplicaManager broker={broker}] {extra} (kafka.server.ReplicaManager)\n"
        "java.io.IOException: x\n\tat a.B(C.scala:114)\n"
    ).encode()


def requests(broker: int, count: int = 3) -> bytes:
    line = (
        '[2026-11-20 15:33:26,082] DEBUG Completed request:{{"n":{n},'
        '"connection":"127.0.0.1:{port}-127.0.0.1:53670-4"}}'
        " (kafka.request.logger)\n"
    )
    return "".join(line.format(n=n, port=19092 + broker) for n in range(count)).encode()


CLEANER = b"[2026-11-20 15:33:21,368] INFO Starting the log cleaner (kafka.log.LogCleaner)\n"


def write(root: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return root


def cluster(root: Path, name: str = A) -> Path:
    return write(
        root,
        {
            f"b{broker}/logs/{file}": content
            for broker in (1, 2)
            for file, content in (
                ("server.log.gz", server(broker, name)),
                ("kafka-request.log", requests(broker)),
                ("log-cleaner.log", CLEANER + f"java.io.IOException: {name} {broker}\n".encode()),
            )
        },
    )


def run(spark: SparkSession, lake: Lake, *paths: Path, run_id: str = "r1") -> IngestSummary:
    return ingest(spark, lake, paths, CONFIG, run_id)


def lines(lake: Lake) -> list[tuple]:
    stored = lake.read(LOG_LINES).select("cluster_id", "broker_id", "kind", "line_no", "message")
    return sorted(map(tuple, stored.collect()))


def files(lake: Lake) -> dict[str, object]:
    return {row["path"]: row for row in lake.read(LOG_FILES).collect()}


def test_a_tree_becomes_bronze_and_again_nothing(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    root = cluster(tmp_path)
    summary = run(spark, lake, root)
    assert (summary.files_found, summary.files_new, summary.problems) == (6, 6, ())
    assert summary.brokers == (LoggedBroker(A, 1, "2.8.2", "zookeeper"), LoggedBroker(A, 2, "2.8.2", "zookeeper"))
    stored = files(lake)
    sources = {Path(path).name: row["broker_id_source"] for path, row in stored.items()}
    assert sources == {"server.log.gz": "content", "kafka-request.log": "listener", "log-cleaner.log": "folder"}
    assert all(row["path"].split("/b")[-1].startswith(str(row["broker_id"])) for row in stored.values())
    assert sum(row["record_count"] for row in stored.values()) == summary.records == 2 * (4 + 3 + 1)
    assert len(lines(lake)) == summary.records
    versions = lake.versions()

    again = run(spark, lake, root, run_id="r2")
    assert (again.files_found, again.files_new, again.lines, again.brokers) == (6, 0, 0, summary.brokers)
    assert lake.versions() == versions


def test_what_a_batch_that_was_cut_off_has_left_comes_before_the_next(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    for hour in range(4):
        write(tmp_path, {f"b1/server.log.{hour}": server(1).replace(b" 15:", f" {15 + hour}:".encode())})
    ids = map(str, range(1, 99))

    def batches(waiting_bytes: int = 0) -> Iterator[tuple[int, int]]:
        inputs = read_inputs(None, lake, [tmp_path], CONFIG)
        assert inputs is not None
        for summary in ingest_batches(spark, lake, inputs, CONFIG, lambda: next(ids), 600, waiting_bytes):
            yield summary.files_new, summary.files_waiting

    assert next(batches()) == (1, 3)
    assert list(batches()) == [(0, 3), (1, 2), (1, 1), (1, 0)]
    assert lake.read(LOG_FILES).select("run_id").distinct().count() == 4
    # A last one comes with what was left if both are no more than a batch.
    for hour, waiting_bytes, told in ((5, 10, [(1, 0)]), (6, 590, [(0, 1), (1, 0)])):
        write(tmp_path, {f"b1/server.log.{hour}": server(1).replace(b" 15:", f" {15 + hour}:".encode())})
        assert list(batches(waiting_bytes)) == told


def test_a_file_that_is_as_it_was_is_not_opened_again(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = cluster(tmp_path / "in")
    with tarfile.open(root / "b3.tgz", "w:gz") as bundle:
        bundle.add(write(tmp_path / "b3", {"server.log": server(3), "log-cleaner.log": CLEANER}), "b3")
    for path in root.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    first = run(spark, lake, root)
    hashed: list[list[str]] = []

    def watched(paths: Iterable[str], known: frozenset[str]) -> dict[str, str]:
        hashed.append(sorted(paths))
        return known_files(hashed[-1], known)

    monkeypatch.setattr(module, "known_files", watched)
    versions = lake.versions()
    again = run(spark, lake, root, run_id="r2")
    assert (again.files_found, again.files_new) == (first.files_found, 0)
    assert again.brokers == first.brokers
    # Touched, it is hashed; with another record it is read.
    touched, grown = root / "b1/logs/log-cleaner.log", root / "b2/logs/log-cleaner.log"
    os.utime(touched)
    assert run(spark, lake, root, run_id="r3").files_new == 0
    assert lake.versions() == versions
    grown.write_bytes(grown.read_bytes() + CLEANER)
    assert run(spark, lake, root, run_id="r4").files_new == 1
    assert hashed == [[], [str(touched)], [str(touched), str(grown)]]


def test_rows_point_at_their_bytes(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    path = write(tmp_path, {"server.log": server(1)}) / "server.log"
    run(spark, lake, path)
    content = path.read_bytes()
    for row in lake.read(LOG_LINES).collect():
        assert content[row["byte_offset"] :].startswith(b"[2026-11-20")
        assert content[: row["byte_offset"]].count(b"\n") + 1 == row["line_no"]
        assert row["time"].isoformat().endswith("15:33:21.101000")
    message = lake.read(LOG_LINES).where("level = 'WARN'").collect()[0]["message"]
    assert message == "[ReplicaManager broker=1] \njava.io.IOException: x\n\tat a.B(C.scala:114)"


def test_the_same_content_under_other_names_is_read_once(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    write(tmp_path, {"server.log": server(1), "server.log.1.gz": server(1), "copy/server.log": server(1)})
    first = run(spark, lake, tmp_path)
    assert (first.files_found, first.files_new) == (3, 1)
    assert list(files(lake)) == [str(tmp_path / "copy" / "server.log")]
    shutil.move(tmp_path / "server.log", tmp_path / "server.log.2026-11-20-14")
    assert run(spark, lake, tmp_path).files_new == 0


def test_a_cluster_that_nothing_tells_has_the_name_it_is_given(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Brokers before 0.10.1 have no cluster id (KIP-78)."""
    cluster(tmp_path / "new")
    old = b"".join(line for line in server(1).splitlines(keepends=True) if b"Cluster ID" not in line)
    root = write(tmp_path / "old", {"server.log": old, "state-change.log": CLEANER})
    named = CONFIG.model_copy(update={"cluster": "paper"})
    ingest(spark, lake, [root], named, "r1")
    ingest(spark, lake, [tmp_path / "new"], named, "r2")
    clusters = {Path(path).relative_to(tmp_path).parts[0]: row.cluster_id for path, row in files(lake).items()}
    assert clusters == {"old": "paper", "new": A}
    assert {row.problem for path, row in files(lake).items() if "old" in path} == {None}


def test_clusters_on_the_same_addresses(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    cluster(tmp_path / "a", A)
    cluster(tmp_path / "b", B)
    # Equal contents are one file; these differ by a line.
    (tmp_path / "b/b1/logs/kafka-request.log").write_bytes(requests(1, 5))
    (tmp_path / "b/b2/logs/kafka-request.log").write_bytes(requests(2, 5))
    summary = run(spark, lake, tmp_path)
    assert {(broker.cluster_id, broker.broker_id) for broker in summary.brokers} == {(A, 1), (A, 2), (B, 1), (B, 2)}
    for path, row in files(lake).items():
        assert row["cluster_id"] == (A if path.startswith(str(tmp_path / "a")) else B)
        assert f"/b{row['broker_id']}/" in path


def test_a_crash_between_lines_and_register_leaves_no_trace(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = cluster(tmp_path)

    append = lake.append_once

    def crash(spec: TableSpec, rows: DataFrame, stamp: str) -> None:
        if spec is LOG_FILES:
            raise RuntimeError("power loss")
        append(spec, rows, stamp)

    with monkeypatch.context() as patch:
        patch.setattr(lake, "append_once", crash)
        with pytest.raises(RuntimeError, match="power loss"):
            run(spark, lake, root)
    assert files(lake) == {}
    before = lines(lake)
    write(root, {"b1/logs/state-change.log": b"[2026-11-20 15:33:26,082] INFO [Broker id=1] x (state.change.logger)\n"})
    summary = run(spark, lake, root)
    assert summary.files_new == 7
    assert len(lines(lake)) == len(before) + 1
    assert set(before) < set(lines(lake))


def test_a_log_read_while_it_is_written(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    content = server(1) + server(1, extra="later")
    path = write(tmp_path, {"server.log": content[: len(server(1)) + 40]}) / "server.log"
    run(spark, lake, path)
    path.unlink()
    write(tmp_path, {"server.log.2026-11-20-15": content, "server.log": CLEANER.replace(b"LogCleaner", b"X")})
    summary = run(spark, lake, tmp_path)
    assert summary.files_new == 2
    rows = lake.read(LOG_LINES).where("problem is null and logger <> 'kafka.log.X'").collect()
    whole = {content[: row["byte_offset"]].count(b"\n") + 1: row["message"] for row in rows}
    assert len(rows) == len(whole) == 8
    assert {row["problem"] for row in lake.read(LOG_LINES).collect()} == {None, "half_line"}
    # The rotated log that follows has no identity of its own: the files of the same folder in the lake have.
    assert {row["broker_id"] for row in files(lake).values()} == {1}
    assert {row["kafka_version"] for row in files(lake).values()} == {"2.8.2"}


def test_broker_that_is_learnt_later_is_said(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    write(tmp_path, {"b1/kafka-request.log": requests(1)})
    first = run(spark, lake, tmp_path)
    assert "server.log into the same folder" in first.problems[0][1]
    write(tmp_path, {"b1/server.log": server(1)})
    second = run(spark, lake, tmp_path)
    problems = dict(second.problems)
    assert "which is 1" in problems[str(tmp_path / "b1/kafka-request.log")]
    assert problems.keys() <= {str(tmp_path / "b1/kafka-request.log"), str(tmp_path)}


def test_bad_files_are_reported_and_the_others_read(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    good = server(1)
    write(tmp_path, {"server.log": good, "controller.log": b"", "state-change.log": b"\x89PNG\r\n\x1a\n" + bytes(900)})
    (tmp_path / "server.log.1.gz").write_bytes(gzip.compress(server(1, extra="older") * 50)[:-40])
    (tmp_path / "kafka-request.log").write_bytes(requests(1)[:-30])
    summary = run(spark, lake, tmp_path)
    problems = {Path(path).name: problem for path, problem in summary.problems}
    assert problems["controller.log"] == "empty file"
    assert problems["state-change.log"].startswith("not text: control characters")
    assert problems["server.log.1.gz"].startswith("truncated gzip after")
    assert set(problems) == {"controller.log", "state-change.log", "server.log.1.gz"}
    assert lake.read(LOG_LINES).where("problem = 'half_line'").count() == 2
    assert lake.read(LOG_LINES).count() == summary.records
    assert run(spark, lake, tmp_path).files_new == 0


def test_input_that_holds_no_log_stores_nothing(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        run(spark, lake, tmp_path / "missing")
    with pytest.raises(InputError, match="no log files"):
        run(spark, lake, tmp_path)
    write(tmp_path, {"a.log": b"\x89PNG\r\n\x1a\n" + bytes(900), "b.log": bytes(900), "c.log": b""})
    with pytest.raises(InputError, match="none of 3 files is a broker"):
        run(spark, lake, tmp_path)
    with pytest.raises(InputError, match="is not a broker"):
        run(spark, lake, tmp_path / "c.log")
    assert files(lake) == {}


def test_a_file_rotated_between_the_passes_costs_no_other(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = cluster(tmp_path)
    identify = module.identify

    starts = iter((10, 20, 30))

    def rotate(*arguments):
        (root / "b1/logs/kafka-request.log").write_bytes(requests(1)[next(starts) :] + b"\n")
        return identify(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(module, "identify", rotate)
        rotated = run(spark, lake, root)
        with pytest.raises(InputError, match=r"kafka-request\.log: changed while .* again"):
            run(spark, Lake(spark, tmp_path / "other"), root / "b1/logs/kafka-request.log")
    assert [problem for path, problem in rotated.problems if path.endswith("b1/logs/kafka-request.log")] == [
        "changed while it was read, probably as it was rotated: run again"
    ]
    before = files(lake)
    assert before
    assert not any(path.endswith("b1/logs/kafka-request.log") for path in before)
    after = run(spark, lake, root, run_id="r2")
    assert after.files_new == 1
    assert not any("changed" in problem for _, problem in after.problems)
    assert files(lake).keys() - before.keys() == {
        path for path in files(lake) if path.endswith("b1/logs/kafka-request.log")
    }


def test_bundles_and_wrapped_logs_are_the_logs_in_them(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    plain = cluster(tmp_path / "plain")
    run(spark, lake, plain)
    expected = {row["file_id"]: row for row in files(lake).values()}
    bundles = tmp_path / "bundles"
    bundles.mkdir()
    for broker in ("b1", "b2", "b3"):
        if (plain / broker).is_dir():
            with tarfile.open(bundles / f"{broker}.tgz", "w:gz") as archive:
                archive.add(plain / broker, broker)
    other = Lake(spark, tmp_path / "other")
    summary = run(spark, other, bundles)
    assert summary.problems == ()
    found = {row["file_id"]: row for row in files(other).values()}
    assert set(found) == set(expected)
    for file_id, row in found.items():
        same = (
            "kind",
            "layout",
            "cluster_id",
            "broker_id",
            "kafka_version",
            "mode",
            "record_count",
            "sha256",
            "problem",
        )
        assert [row[name] for name in same] == [expected[file_id][name] for name in same]
        assert ".tgz!/b" in row["path"]
    columns = list(LOG_LINES.column_names)
    assert sorted(map(str, other.read(LOG_LINES).select(columns).collect())) == sorted(
        map(str, lake.read(LOG_LINES).select(columns).collect())
    )
    again = run(spark, other, bundles)
    assert (again.files_found, again.files_new, again.brokers) == (len(expected), 0, summary.brokers)


def test_input_of_which_hardly_anything_is_kafkas_is_refused(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    foreign = b"Nov 20 15:29:54 host sshd[1]: Accepted \x1b[31m publickey\n" * 2000
    app = b"[2026-11-20 15:33:21,101] INFO started (com.example.Main)\n" * 2000
    write(tmp_path, {"x/messages.log": foreign})
    with pytest.raises(InputError) as refused:
        run(spark, lake, tmp_path / "x")
    said = str(refused.value)
    assert "messages.log: hardly anything is Kafka's, 0 of 2000 records" in said
    assert (
        'begins with "Nov 20 15:29:54 host sshd[1]: Accepted \\x1b[31m publickey"; expected lines such as [2026' in said
    )
    write(tmp_path, {"x/app.log": app, "x/server.log": CLEANER})
    with pytest.raises(InputError, match="hardly anything is Kafka's, 1 of 4001 records"):
        run(spark, lake, tmp_path / "x")
    assert files(lake) == {}
    write(tmp_path, {"x/server.log": CLEANER * 100})
    summary = run(spark, lake, tmp_path / "x")
    problems = {Path(path).name: problem for path, problem in summary.problems}
    assert problems["x"] == "2 files are not broker logs: 2 other texts"
