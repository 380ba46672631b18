"""Logs, lake and report in a store: what comes out is what comes out on a local disk, whoever is killed or stopped."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.catalog import NAME_FILES, PLACE
from tests.crash.commands import ROOT, SMALL_CONF, Command, Ended, Seen, highwater
from tests.crash.conftest import VERDICTS, Undisturbed
from tests.crash.inputs import INSTANTS
from tests.crash.killing import Killer, ways
from tests.crash.lakes import compare, tables
from tests.cuts import cut_at, deliver
from tests.stores.places import AZURE, HDFS, S3, Remote, get, put

#: Others wait for so long, and a few seconds, for a run that was killed.
LEASE_S = 15
CONF = SMALL_CONF + f"lease_s = {LEASE_S}\n"
WAITING = CONF.replace("lock_wait_s = 0", "lock_wait_s = 600")
SEED = 20261123
#: Ids of runs and paths of files are those of places.
OF_THE_PLACE = ("gold.runs", *(spec.full_name for spec in NAME_FILES))


def asked(*arguments: object) -> subprocess.CompletedProcess[str]:
    """A verb that needs no Spark: where Java is not found, it would fail."""
    command = [sys.executable, "-m", "highwater.jobs.cli", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAVA_HOME": "/nowhere", "COLUMNS": "200"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def compared(
    undisturbed: Undisturbed, remote: Remote, folder: Path, layers: tuple[str, ...], but_columns: tuple[str, ...] = ()
) -> list[str]:
    """What differs from a lake on a local disk."""
    there = get(remote, "lake", folder / "downloaded")
    found = compare(undisturbed.folder / "lake", there, layers, OF_THE_PLACE, but_columns)
    print(found)
    return found.differences


@pytest.mark.parametrize("remote", [S3, HDFS], indirect=True)
def test_an_audit_in_a_store_is_that_of_a_disk(undisturbed: Undisturbed, remote: Remote, tmp_path: Path) -> None:
    put(remote, undisturbed.corpus, "logs")
    lake, out = remote.uri("lake"), remote.uri("report")
    ended = highwater(tmp_path, "audit", remote.uri("logs"), conf=CONF, lake=lake, out=out)
    print(f"{ended.seconds:.0f} s, {ended.cpu_s:.0f} s of CPU")
    assert "[Stage" not in ended.err
    assert ended.code == undisturbed.ended.code, ended.err
    assert compared(undisturbed, remote, tmp_path, ("gold", "silver")) == []
    _is_reported(undisturbed, remote, tmp_path)
    assert not [name for name in remote.names("lake") if "_staging" in name or ".probe" in name]
    counts = {name: version.count() for name, version in tables(tmp_path / "downloaded").items()}
    _is_read_without_spark(undisturbed, remote, counts)

    # The same once more: nothing new, and Spark's SQL reads it.
    before = remote.names("lake")
    again = highwater(tmp_path, "audit", remote.uri("logs"), conf=CONF, lake=lake, out=out)
    assert "nothing new" in again.err
    assert not {name for name in remote.names("lake") - before if "_delta_log" in name and "quality" not in name}
    bundled = highwater(tmp_path, "bundle", lake=lake, out=remote.uri("bundle.zip"))
    assert bundled.code == 0, bundled.err
    archive = remote.read("bundle.zip")
    assert zipfile.ZipFile(io.BytesIO(archive)).testzip() is None
    rows = highwater(tmp_path, "sql", "SELECT count(*) AS n FROM gold_delayed_operations", "--format", "csv", lake=lake)
    assert rows.out.split() == ["n", str(counts["gold.delayed_operations"])]


@pytest.mark.parametrize("remote", [AZURE], indirect=True)
def test_logs_and_reports_beside_a_lake_on_a_disk(undisturbed: Undisturbed, remote: Remote, tmp_path: Path) -> None:
    """And readers of a lake that was copied there: no server at hand speaks what Spark's `abfss` asks."""
    put(remote, undisturbed.corpus, "logs")
    ended = highwater(tmp_path, "audit", remote.uri("logs"), conf=CONF, out=remote.uri("report"))
    assert ended.code == undisturbed.ended.code, ended.err
    assert compare(undisturbed.folder / "lake", tmp_path / "lake", ("gold", "silver"), OF_THE_PLACE).differences == []
    _is_reported(undisturbed, remote, tmp_path)
    put(remote, tmp_path / "lake", "lake")
    counts = {name: version.count() for name, version in tables(tmp_path / "lake").items()}
    _is_read_without_spark(undisturbed, remote, counts)


def _is_reported(undisturbed: Undisturbed, remote: Remote, folder: Path) -> None:
    reports = remote.names("report")
    assert reports == {f"report/report.{kind}" for kind in ("json", "md", "html", "sarif")}
    report = json.loads((get(remote, "report", folder / "report") / "report.json").read_text())
    assert report["verdict"] == json.loads((undisturbed.folder / "report" / "report.json").read_text())["verdict"]


def _is_read_without_spark(undisturbed: Undisturbed, remote: Remote, counts: dict[str, int]) -> None:
    lake = remote.uri("lake")
    listed = asked("tables", "--lake", lake, "--json")
    assert listed.returncode == 0, listed.stderr
    assert {table["table"]: table["rows"] for table in json.loads(listed.stdout)} == counts
    for arguments in (["tables", "state"], ["tables", "gold.runs"], ["sql"], ["maintain", "--dry-run"]):
        told = asked(*arguments, "--lake", lake)
        assert told.returncode == 0, told.stderr
    survivors = asked("survivors", "--lake", lake, "--format", "json")
    assert survivors.stdout == asked("survivors", "--lake", undisturbed.folder / "lake", "--format", "json").stdout
    assert survivors.stdout
    exported = asked("metrics", "--lake", lake, "--out", remote.uri("metrics"))
    assert exported.returncode == 0, exported.stderr
    assert remote.names("metrics")
    script = asked("sql", "--duckdb-views", "--lake", lake)
    assert f"delta_scan('{lake}/gold/runs')" in script.stdout
    table = DeltaTable(f"{lake}/gold/delayed_operations", storage_options=remote.options)
    assert table.to_pyarrow_table().num_rows == counts["gold.delayed_operations"]


def test_pieces_are_merged_and_maintained(undisturbed: Undisturbed, remote: Remote, tmp_path: Path) -> None:
    """Delta's MERGE and replacement of some rows, its OPTIMIZE, and the removal of what no version needs."""
    shipped = tmp_path / "shipped"
    for piece in cut_at(undisturbed.corpus, tmp_path / "pieces", INSTANTS[:1]):
        deliver(piece, shipped)
        put(remote, shipped, "logs")
        ended = highwater(tmp_path, "audit", remote.uri("logs"), conf=CONF, lake=remote.uri("lake"))
        assert ended.code in VERDICTS, ended.err
    # Pieces are other files, so timelines rest on lines in other places.
    assert compared(undisturbed, remote, tmp_path / "merged", ("gold",), PLACE) == []
    before = {name for name in remote.names("lake") if name.endswith(".parquet")}
    maintained = highwater(tmp_path, "maintain", "--retention-hours", 0, "--force", conf=CONF, lake=remote.uri("lake"))
    assert maintained.code == 0, maintained.err
    assert compared(undisturbed, remote, tmp_path / "maintained", ("gold",), PLACE) == []
    after = {name for name in remote.names("lake") if name.endswith(".parquet")}
    print(maintained.out)
    assert before - after
    assert len(after) < len(before)


def test_two_at_once(undisturbed: Undisturbed, remote: Remote, tmp_path: Path) -> None:
    """One fails at once, as it is told not to wait; another waits, and nothing is lost."""
    put(remote, undisturbed.corpus, "logs")
    brokers = sorted(path.name for path in undisturbed.corpus.glob("broker-*"))
    lake = remote.uri("lake")
    one = Command(tmp_path, "audit", remote.uri(f"logs/{brokers[0]}"), conf=WAITING, lake=lake)
    assert one.until(lambda seen: seen.stages), one.err()
    hasty = highwater(tmp_path, "audit", remote.uri("logs"), conf=CONF, lake=lake)
    assert hasty.code == 2
    assert f"is being written by highwater audit, process {one.process.pid} on" in hasty.complaints[0]
    others = [remote.uri(f"logs/{broker}") for broker in brokers[1:]]
    two = Command(tmp_path, "audit", *others, conf=WAITING, lake=lake)
    first, second = one.ended(), two.ended()
    assert {first.code, second.code} <= set(VERDICTS), first.err + second.err
    assert f"is being written by highwater audit, process {one.process.pid} on" in second.err
    assert compared(undisturbed, remote, tmp_path, ("gold",)) == []


def _silver(seen: Seen) -> str | None:
    return next((name for name in seen.commits if name.startswith("silver.")), None)


def test_a_driver_that_was_stopped_for_longer_than_its_lease_writes_nothing(
    undisturbed: Undisturbed, remote: Remote, tmp_path: Path
) -> None:
    put(remote, undisturbed.corpus, "logs")
    slow = Command(tmp_path, "audit", remote.uri("logs"), conf=CONF, lake=remote.uri("lake"))
    assert slow.until(_silver), slow.err()
    slow.signal(signal.SIGSTOP)
    time.sleep(LEASE_S)
    ended = highwater(tmp_path, "audit", remote.uri("logs"), conf=WAITING, lake=remote.uri("lake"))
    assert ended.code == undisturbed.ended.code, ended.err
    before = remote.names("lake")
    slow.signal(signal.SIGCONT)
    late = slow.ended()
    print(late.complaints)
    assert late.code == 2, late.err
    assert "is not written any more" in late.complaints[-1]
    written = {name for name in remote.names("lake") - before if "/_delta_log/" in name}
    assert written == set()
    assert compared(undisturbed, remote, tmp_path, ("gold", "silver")) == []


def test_killed_and_run_again(
    undisturbed: Undisturbed, remote: Remote, tmp_path: Path, tell: Callable[[str], None]
) -> None:
    kills = int(os.environ.get("HIGHWATER_KILLS", "50"))
    put(remote, undisturbed.corpus, "logs")
    killer = Killer(SEED, undisturbed.ended.seconds * 2, ways(SEED))
    lake, ended, round_ = "", None, 0
    while len(killer.kills) < kills:
        if ended is not None or not lake:
            # It is done, and there is nothing left to kill: another lake.
            round_ += 1
            lake = f"lake-{round_}"
            killer.new_chain()
        ended = killer.run_and_kill(
            tmp_path, "audit", remote.uri("logs"), lake=remote.uri(lake), conf=WAITING, out=remote.uri("report")
        )
        if ended is None:
            tell(str(killer.kills[-1]))
        else:
            _same(undisturbed, remote, lake, ended, tmp_path)
    ended = highwater(tmp_path, "audit", remote.uri("logs"), conf=WAITING, lake=remote.uri(lake))
    _same(undisturbed, remote, lake, ended, tmp_path)
    tell(f"{len(killer.kills)} kills: {dict(killer.by_way())}, {len(killer.by_stage())} places, {round_} lakes")


def _same(undisturbed: Undisturbed, remote: Remote, lake: str, ended: Ended, folder: Path) -> None:
    assert ended.code == undisturbed.ended.code, ended.err
    there = get(remote, lake, folder / f"downloaded-{lake}-{time.monotonic_ns()}")
    found = compare(undisturbed.folder / "lake", there, ("gold", "silver"), without=OF_THE_PLACE)
    assert found.differences == []
