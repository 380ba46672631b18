"""A lake that others have filled: verbs read what is the lake's, name the rest, and leave all that lies outside."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
import pytest

from highwater.jobs import cli
from highwater.jobs.exit_codes import ExitCode
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.lake.delta_commits import append
from highwater.pipelines.lake.delta_log import read_log
from highwater.pipelines.lake.lock import LOCK_NAME
from highwater.pipelines.lake.table_files import build_table, write_rows
from highwater.pipelines.lake.tables import create_table
from highwater.pipelines.storage.store import store_of
from highwater.pipelines.upkeep.maintenance import SMALL_FILES_MIN
from highwater.schemas.catalog import TABLES
from highwater.schemas.gold import RUNS
from tests.hostile import (
    DATA_FILES,
    LINKS,
    LOGS,
    METADATA,
    SQL_NAMES,
    TABLE_LOGS,
    bytes_of,
    commit,
    outside_of,
    strange,
    with_metadata,
)

#: Verbs that start no Spark, and verbs that write, which end before they start it where the lake is refused.
READING = (
    ("tables",),
    ("tables", "violations"),
    ("tables", "state"),
    ("sql",),
    ("sql", "--duckdb-views"),
    ("maintain", "--dry-run"),
    ("expire", "--keep", "1d", "--dry-run"),
    ("survivors", "t-0"),
    ("whatif",),
    ("trace", "write", "t-0"),
    ("compare", "2026-11-20T15:00/2026-11-20T16:00", "2026-11-20T16:00/2026-11-20T17:00"),
    ("gate",),
    ("report",),
    ("metrics",),
)
#: Of them those that read the log of a table of findings.
OPENING = (("tables",), ("sql", "--duckdb-views"), ("gate",), ("report",), ("maintain", "--dry-run"))
WRITING = (("maintain",), ("expire", "--keep", "1d"))
#: By no verdict, and not by an internal error.
ENDED = (ExitCode.CLEAN, ExitCode.USAGE, ExitCode.INCONCLUSIVE)
WITH_SPARK = (("parse",), ("replay",), ("quality",))


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    return outside_of(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of this version, without rows."""
    folder = tmp_path_factory.mktemp("made")
    for spec in TABLES:
        create_table(folder / spec.layer / spec.name, spec)
    return folder


@pytest.fixture
def lake(made: Path, tmp_path: Path) -> Path:
    """A copy of it, to be filled by others."""
    return shutil.copytree(made, tmp_path / "lake")


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verb that starts Spark on such a lake has opened it."""
    monkeypatch.setattr("highwater.jobs.sessions.build_session", lambda *_, **__: pytest.fail("Spark is started"))


@contextmanager
def untouched(folder: Path) -> Iterator[None]:
    before = bytes_of(folder)
    yield
    assert bytes_of(folder) == before


@contextmanager
def ended_within(seconds: int) -> Iterator[None]:
    """Fail where a verb waits for a FIFO without end."""

    def fail(*_: object) -> None:
        pytest.fail("waits without end")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def add_run(lake: Path, stamp: str) -> None:
    runs = lake / "gold" / "runs"
    append(runs, write_rows(runs, RUNS, build_table(RUNS, [_run_row("r")])), stamp)


def _run_row(run_id: str) -> tuple[object, ...]:
    return (run_id, *([datetime(2026, 1, 1, tzinfo=UTC)] * 2), "1", "c", "f", "clean", 1, 1, 1)


def run(lake: Path, *arguments: str) -> int:
    out = ["--out", str(lake.parent / "out")] if arguments[0] in ("report", "metrics") else []
    return cli.run([*arguments, *out, "--lake", str(lake)])


def test_no_verb_takes_a_folder_for_a_table_by_its_name(
    lake: Path, outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    strange(lake, outside)
    strangers = {name: bytes_of(lake / "gold" / name) for name in (*SQL_NAMES, "orders")}
    with untouched(outside):
        for verb in (*READING, *WRITING, ("doctor",)):
            assert run(lake, *verb) in ENDED, verb
            said = capsys.readouterr()
            assert said.err.count("left alone, since no table of a lake: ") == 1, verb
            assert "internal error" not in said.err, verb
            assert not any(part in said.out for part in ("reflect", "COPY", "DROP TABLE", "orders")), verb
            assert "\x1b[31m" not in said.err, verb
    assert {name: bytes_of(lake / "gold" / name) for name in strangers} == strangers
    assert (lake / "gold" / "violations" / "more").is_symlink()
    assert not (lake / "gold" / "violations" / "part-killed.parquet").exists(), "maintain has done its work"


def test_a_dry_run_says_what_the_run_does(lake: Path, outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    strange(lake, outside)
    before = bytes_of(lake)
    assert run(lake, "maintain", "--dry-run") == ExitCode.CLEAN
    planned = capsys.readouterr().out.split()
    assert (planned[-4:], bytes_of(lake)) == (["no", "1", "8", "B"], before)
    assert run(lake, "maintain") == ExitCode.CLEAN
    assert capsys.readouterr().out.split()[-3:] == ["1", "8", "B"]
    gone = before.keys() - bytes_of(lake).keys()
    assert gone == {"gold/violations/part-killed.parquet"}


@pytest.mark.parametrize("kind", LINKS)
def test_nothing_is_written_through_a_link(
    kind: str, lake: Path, outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    LINKS[kind](lake, outside)
    with untouched(outside):
        for verb in (("tables",), ("maintain", "--dry-run"), ("report",), *WRITING, *WITH_SPARK):
            code = run(lake, *verb)
            said = capsys.readouterr()
            assert code in ENDED, (verb, said.err)
            assert "(a link)" in said.err, verb
            if verb in (*WRITING, *WITH_SPARK):
                assert (code, "is a link" in said.err) == (ExitCode.USAGE, True), verb


@pytest.mark.parametrize("kind", LOGS)
def test_no_log_leads_out_of_the_lake(kind: str, lake: Path, outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    LOGS[kind](lake, outside)
    with untouched(outside):
        for verb in (*OPENING, *WRITING):
            assert run(lake, *verb) in ENDED, verb
            said = capsys.readouterr()
            assert "secret" not in said.out, verb
            # What is said to be removed is nothing but left out of what the table's own folder has.
            if kind != "removed" and verb in (("maintain",), ("sql", "--duckdb-views")):
                assert "/gold/violations" in said.err, verb
                assert "gold_violations AS" not in said.out


@pytest.mark.parametrize("kind", [*DATA_FILES, *TABLE_LOGS])
def test_a_damaged_table_is_named_by_its_path(
    kind: str, lake: Path, outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_run(lake, "1")
    {**DATA_FILES, **TABLE_LOGS}[kind](lake, outside)
    for verb in (("sql", "select * from gold_runs"), *OPENING, *WRITING, ("tables", "runs")):
        with ended_within(60):
            code = run(lake, *verb)
        said = capsys.readouterr()
        assert code in ENDED, (verb, said.err)
        assert "internal error" not in said.err, verb
        if verb[0] == "sql" and len(verb[1].split()) > 1:
            assert code == ExitCode.USAGE, said.err
            assert "gold/runs" in said.err, said.err
            assert len(said.err.splitlines()) <= 2, "one line of the error, and one of what is left alone"


#: A name with what a terminal obeys, or shows in another order.
EVIL = "x\x1b[31m\x9b2J\a\u202ey\u2066"


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def evil_lines(path: tuple[str, ...], command: click.Command, lake: Path) -> Iterator[list[str]]:
    """Yield command lines of a command: with the name as each argument, each value of an option, and an option."""
    arguments = [EVIL for one in command.params if isinstance(one, click.Argument) and (one.required or one.nargs == 1)]
    place = ["--lake", str(lake)] if any("--lake" in one.opts for one in command.params) else []
    yield [*path, *arguments, *place]
    yield [*path, *place]
    yield [*path, *arguments, *place, f"--{EVIL}"]
    for one in command.params:
        if isinstance(one, click.Option) and not one.is_flag:
            yield [*path, *arguments, *(() if "--lake" in one.opts else place), one.opts[0], EVIL]


COMMANDS = dict(commands(cli.highwater))


@pytest.mark.parametrize("path", COMMANDS, ids="-".join)
def test_no_command_prints_what_a_terminal_obeys(
    path: tuple[str, ...],
    lake: Path,
    outside: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise InputError(EVIL, EVIL, EVIL)

    monkeypatch.setattr("highwater.jobs.sessions.build_session", refuse)
    monkeypatch.chdir(outside)
    strange(lake, outside)
    lake = lake.rename(lake.with_name(EVIL))
    (lake / "gold" / EVIL).mkdir()
    with_metadata(lake / "gold" / "violations", lambda metadata: add_column(metadata, EVIL))
    is_named = False
    for line in evil_lines(path, COMMANDS[path], lake):
        code = cli.run(line)
        said = capsys.readouterr()
        assert code != ExitCode.INTERNAL, (line, said.err)
        assert not set(EVIL) - {*"x[31m2Jy"} & {*said.out, *said.err}, line
        is_named |= any(mark in said.out + said.err for mark in ("\\u001b", "\\x1b"))
    assert is_named


@pytest.mark.parametrize("form", ["text", "csv", "json"])
def test_no_answer_prints_what_a_terminal_obeys(form: str, lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(lake, "sql", f"select '{EVIL}' as \"{EVIL}\"", "--format", form) == ExitCode.CLEAN
    said = capsys.readouterr().out
    assert "x" in said
    assert not set(EVIL) - {*"x[31m2Jy"} & {*said}


def add_column(metadata: dict[str, Any], name: str) -> None:
    schema = json.loads(metadata["schemaString"])
    schema["fields"].append({"name": name, "type": "string", "nullable": True, "metadata": {}})
    metadata["schemaString"] = json.dumps(schema)


def test_paths_of_a_log_are_literal(lake: Path, outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file with a wildcard in its name does not bring its neighbours, links among them."""
    runs = lake / "gold" / "runs"
    for number, name in enumerate(("*.parquet", "[a-z]*.parquet", "part-?.parquet", "{a,b}.parquet", "%2A.parquet")):
        (added,) = write_rows(runs, RUNS, build_table(RUNS, [_run_row(f"r{number}")]))
        (runs / added.path).rename(runs / name)
        commit(runs, {"add": added.action()["add"] | {"path": quote(name)}})
    for name in ("part-1.parquet", "a.parquet", "b.parquet"):
        (runs / name).symlink_to(outside / "old" / "secret.parquet")
    assert run(lake, "sql", "select run_id from gold_runs order by 1", "--format", "csv") == ExitCode.CLEAN
    assert capsys.readouterr().out.split() == ["run_id", "r0", "r1", "r2", "r3", "r4"]


@pytest.mark.parametrize("kind", METADATA)
def test_what_is_not_declared_is_not_opened_for_writing(
    kind: str, lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With eight small files, for which Spark would be started."""
    change, told = METADATA[kind]
    runs = lake / "gold" / "runs"
    for number in range(SMALL_FILES_MIN):
        add_run(lake, f"{number}")
    with_metadata(runs, change)
    killed = lake / "gold" / "violations" / "part-killed.parquet"
    killed.write_bytes(b"x")
    os.utime(killed, (0, 0))
    version = read_log(runs).version
    assert run(lake, "maintain") == ExitCode.USAGE
    said = capsys.readouterr()
    assert f"gold/runs: has what is not declared ({told})" in said.err
    assert "remove the table" in said.err
    assert not killed.exists(), "the others are looked after"
    assert read_log(runs).version == version


def test_tables_of_others_are_not_looked_after(outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One of them lies where a lake has a table, by the same name."""
    warehouse = outside / "warehouse"
    with untouched(outside):
        for verb in (("maintain", "--dry-run"), *WRITING, *WITH_SPARK, ("expire", "--keep", "1d", "--dry-run")):
            assert run(warehouse, *verb) == ExitCode.USAGE, verb
            assert "is not a lake of highwater: others made its tables (gold.runs)" in capsys.readouterr().err, verb


@pytest.mark.parametrize("kind", ["text", "hard link", "pipe"])
def test_a_lock_is_a_lock(kind: str, lake: Path, outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = lake / LOCK_NAME
    make: dict[str, Callable[[], object]] = {
        "text": lambda: lock.write_text("notes of somebody", encoding="utf-8"),
        "hard link": lambda: os.link(outside / "old" / "victim.txt", lock),
        "pipe": lambda: os.mkfifo(lock),
    }
    make[kind]()
    with untouched(outside):
        assert run(lake, "parse") == ExitCode.USAGE
    assert f"{LOCK_NAME}: is not a lock of a lake" in capsys.readouterr().err
    if kind == "text":
        assert lock.read_text(encoding="utf-8") == "notes of somebody"


def test_a_report_is_not_written_through_links(lake: Path, outside: Path, tmp_path: Path) -> None:
    """Links in the folder of reports are replaced, and a folder behind one is not entered."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "index.csv").symlink_to(outside / "old" / "victim.txt")
    (out / "broker-1").symlink_to(outside / "old")
    with untouched(outside):
        store_of(out).replace(out / "index.csv", b"new")
        assert not (out / "index.csv").is_symlink()
        for attempt in (
            lambda: store_of(out).make_folder(out / "broker-1" / "deep"),
            lambda: store_of(out).replace(out / "broker-1" / "victim.txt", b"new"),
            lambda: store_of(out).create(out / "broker-1" / "new.txt", b"new"),
            lambda: store_of(out).remove(out / "broker-1" / "victim.txt"),
            lambda: store_of(out).open_arrow_sink(out / "broker-1" / "new.parquet"),
        ):
            with pytest.raises(InputError, match="is reached through a link"):
                attempt()
        store_of(out).remove_tree(out / "broker-1")
