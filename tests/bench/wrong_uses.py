"""Wrong uses of the command, as `tests.bench.errors` runs them: what is wrong, what is typed, and what it meets."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.fetch_jars import DELTA, read_locked
from highwater.pipelines.lake.delta_commits import allow_commits
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.lock import hold_lock
from highwater.pipelines.upkeep.upgrade import upgrade
from highwater.schemas.catalog import TABLES

ROOT = Path(__file__).resolve().parents[2]
#: A small lake of an older version.
OLD_LAKE = ROOT / "tests" / "data" / "lake"
DEFAULT_LAKE = "highwater-lake"

Before = Callable[[Path], None]


def nothing(folder: Path) -> None:
    """The folder has logs, and nothing else."""


@dataclass(frozen=True)
class Case:
    """A wrong use."""

    what: str  #: in words
    line: str  #: as it is typed
    before: Before = nothing  #: makes what the line meets
    code: int = ExitCode.USAGE  #: the exit code
    #: variables that are set, or with None unset; FOLDER is the case's
    environment: Mapping[str, str | None] = field(default_factory=dict)
    around: str = ""  #: what runs the line, which is its ``{}``; empty: a shell, or nothing
    is_spark: bool = False  #: starts Spark, or needs a lake that it made: minutes
    is_help: bool = False  #: prints its help, rather than a sentence

    @property
    def in_shell(self) -> bool:
        """Whether it takes a process of its own: a shell, rights that root has, or another Java."""
        words = re.sub(r"'[^']*'|\"[^\"]*\"", "", self.line)
        is_shells = bool(self.around or re.search(r"[|>&;]|^timeout", words) or "JAVA_HOME" in self.environment)
        return is_shells or self.is_spark or (os.geteuid() == 0 and "may not" in self.what)


# What a line meets.


def lake(folder: Path) -> None:
    """A lake of an older version, with one audit."""
    shutil.copytree(OLD_LAKE, folder / DEFAULT_LAKE)


def unfilled(folder: Path) -> None:
    """A lake of this version, without a row."""
    (folder / DEFAULT_LAKE).mkdir()
    with hold_lock(folder / DEFAULT_LAKE, "audit", 0, print):
        Lake(None, folder / DEFAULT_LAKE).create(TABLES)
        upgrade(folder / DEFAULT_LAKE, allow_commits)


def audited(folder: Path) -> None:
    """The lake of the demo."""
    shutil.copytree(_demo() / "lake", folder / DEFAULT_LAKE)


@cache
def _demo() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="highwater-demo-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    command = [sys.executable, "-m", "highwater.jobs.cli", "demo", "--no-open", "--folder", str(folder)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=True)
    return folder


def conf(text: str) -> Before:
    """A configuration."""

    def write(folder: Path) -> None:
        (folder / "site.toml").write_text(text, encoding="utf-8")
        (folder / "site.toml").chmod(0o600)

    return write


def files(contents: Mapping[str, bytes], mode: int | None = None) -> Before:
    """Files by their paths."""

    def write(folder: Path) -> None:
        for name, content in contents.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            if mode is not None:
                path.chmod(mode)

    return write


def folders(*names: str, mode: int = 0o755) -> Before:
    """Empty folders."""

    def make(folder: Path) -> None:
        for name in names:
            (folder / name).mkdir(parents=True)
            (folder / name).chmod(mode)

    return make


def all_of(*parts: Before) -> Before:
    """One after another."""

    def make(folder: Path) -> None:
        for part in parts:
            part(folder)

    return make


def changed(path: str, mode: int) -> Before:
    """The mode of something that is there."""
    return lambda folder: (folder / path).chmod(mode)


def removed(path: str) -> Before:
    """Something is not there any more."""

    def remove(folder: Path) -> None:
        shutil.rmtree(folder / path) if (folder / path).is_dir() else (folder / path).unlink()

    return remove


def link(name: str, target: str) -> Before:
    """A link."""
    return lambda folder: (folder / name).symlink_to(target)


HOLDER = b'{"pid": 4711, "host": "HOST", "since": "TIME", "verb": "audit"}'
LINE = b"[2026-11-20 15:34:05,123] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n"
#: Nobody listens there.
NOWHERE = "http://127.0.0.1:9"
#: A disk of so many bytes, for as long as the line runs.
DISK = "unshare --mount sh -c 'mount -t tmpfs -o size=64k tmpfs disk && exec {}'"

COMMAND_LINE = (
    Case("no verb", "highwater", is_help=True),
    Case("a verb that there is not", "highwater adit logs"),
    Case("an option that there is not", "highwater audit logs --lak lake"),
    Case("an option of another verb", "highwater tables --conf site.toml"),
    Case("an option without its value", "highwater audit logs --out"),
    Case("no logs", "highwater audit"),
    Case("one argument too many", "highwater tables findings incidents"),
    Case("a choice that there is not", "highwater report --format pdf"),
    Case("a shell that there is not", "highwater completion tcsh"),
    Case("a verb of a verb that there is not", "highwater trace topic orders"),
    Case("no verb of a verb", "highwater trace", is_help=True),
    Case("a time that is none", "highwater audit logs --from yesterday"),
    Case("a time with a month 13", "highwater report --until 2026-13-01"),
    Case("an end before the beginning", "highwater report --from 2026-11-20T16:00 --until 2026-11-20T15:00"),
    Case("a window where all is read", "highwater ingest logs --from 2026-11-20"),
    Case("a number that is none", "highwater gate --stale-after soon"),
    Case("a number below zero", "highwater gate --stale-after -1"),
    Case("rounds of no time", "highwater watch logs --every 0"),
    Case("figures in a report for programs", "highwater report --verbose --format json"),
    Case("a key without redaction", "highwater report --redact-key-file key"),
    Case("a key that is not there", "highwater bundle --redact --redact-key-file key", lake),
    Case(
        "a key that is too short",
        "highwater report --redact --redact-key-file key",
        all_of(lake, files({"key": b"1234\n"})),
    ),
    Case("days without their unit", "highwater expire --keep 90", lake),
    Case("no days to keep", "highwater expire", lake),
    Case("hours within which readers may read", "highwater maintain --retention-hours 2", lake),
    Case("a name that is no schema", "highwater audit logs --catalog highwater"),
    Case("a cluster's name with a blank", "highwater audit logs --cluster 'my cluster'"),
    Case("a page in a store", "highwater report --open --out s3a://bucket/report", lake),
    Case("PagerDuty without a key", "highwater watch logs --webhook-format pagerduty --webhook https://events.invalid"),
    Case("a format for no webhook", "highwater watch logs --webhook-format slack"),
    Case("a webhook that is not an address", "highwater watch logs --webhook hooks.slack.com/T0"),
    Case("a command that is not there", "highwater watch logs --command ./call-me"),
    Case("a command that is no line of a shell", 'highwater watch logs --command "call \'me"'),
    Case("Airflow's folder is not there", "highwater airflow install dags"),
    Case("Airflow's folder may not be written", "highwater airflow install dags", folders("dags", mode=0o555)),
    Case("a rule that there is not", "highwater explain comitted-data-lost"),
)

QUESTIONS = (
    Case("a table that there is not", "highwater tables gold.violation", lake),
    Case("a query of a table that there is not", "highwater sql 'select * from violation'", lake),
    Case("a query with a mistake", "highwater sql 'selct * from findings'", lake),
    Case("a query of a column that there is not", "highwater sql 'select rule from findings'", lake),
    Case("two queries", "highwater sql 'select 1; select 2'", lake),
    Case("a query that writes", "highwater sql \"copy (select 1) to 'rows.csv'\"", lake),
    Case("a query that changes the lake", "highwater sql 'delete from gold_violations'", lake),
    Case("a query of a file", "highwater sql \"select * from '/etc/passwd'\"", lake),
    Case("rows of Parquet on a terminal", "highwater sql 'select 1' --format parquet", lake),
    Case("rows into a folder that is not there", "highwater sql 'select 1' --out absent/rows.csv", lake),
    Case("rows into a folder", "highwater sql 'select 1' --out rows", all_of(lake, folders("rows"))),
    Case("a query and its views", "highwater sql 'select 1' --duckdb-views", lake),
    Case("a master for DuckDB", "highwater sql 'select 1' --master 'local[2]'", lake),
    Case("a partition that is none", "highwater trace partition ledger", lake),
    Case("a partition that nobody wrote of", "highwater trace partition orders-0", lake),
    Case("a request that nobody wrote of", "highwater trace request 0123abcd", lake, code=ExitCode.INCONCLUSIVE),
    Case("a request by half", "highwater trace request --broker 1", lake),
    Case("a correlation id that is none", "highwater trace request --broker 1 --correlation-id x", lake),
    Case("a write of nobody", "highwater trace write", lake),
    Case("a topic that nobody wrote of", "highwater trace write orders", lake, code=ExitCode.INCONCLUSIVE),
    Case("a finding that there is not", "highwater trace finding 0123abcd", lake, code=ExitCode.INCONCLUSIVE),
    Case("survivors of a partition that nobody wrote of", "highwater survivors orders-0", lake),
    Case("a comparison with itself turned round", "highwater compare 2026-11-20T16:00..2026-11-20T15:00 ..", lake),
    Case("a comparison of a time that is none", "highwater compare yesterday..today ..", lake),
    Case("a comparison with a run that is not there", "highwater compare run:0123abcd ..", lake),
    Case("metrics of a lake without any", "highwater metrics", lake),
    Case("Data Docs in a store", "highwater quality --docs s3a://bucket/docs", lake),
)

LOGS_GIVEN = (
    Case("logs that are not there", "highwater audit no-logs"),
    Case("one folder of two is not there", "highwater audit logs no-logs"),
    Case("an empty folder", "highwater audit empty", folders("empty")),
    Case("a folder without logs", "highwater audit notes", files({"notes/notes.txt": b"hello\n"})),
    Case("a data directory", "highwater audit data", files({"data/ledger-0/00000000000000000000.log": b"\0" * 100})),
    Case("logs that may not be read", "highwater audit secret", files({"secret/server.log": LINE}, 0)),
    Case("a folder that may not be read", "highwater audit secret", folders("secret", mode=0)),
    Case(
        "a file in a folder that may not be entered",
        "highwater audit secret/server.log",
        all_of(files({"secret/server.log": LINE}), changed("secret", 0o444)),
    ),
    Case("a pipe", "highwater audit server.log", lambda folder: os.mkfifo(folder / "server.log")),
    Case("a link that leads nowhere", "highwater audit server.log", link("server.log", "gone.log")),
    Case("a link that leads to itself", "highwater audit loop", link("loop", "loop")),
    Case("a store that is not supported", "highwater audit webhdfs://namenode:9870/logs"),
    Case("a store without a bucket", "highwater audit s3a:///logs"),
    Case("another machine's file", "highwater audit file://other/logs"),
    Case(
        "a store that does not answer",
        "highwater audit s3a://bucket/logs",
        environment={"AWS_ENDPOINT_URL": NOWHERE, "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"},
    ),
)

LAKES = (
    Case("a lake without an audit", "highwater gate", unfilled),
    Case("a lake without an audit to hand on", "highwater bundle", unfilled),
    Case("a lake without an audit to expire", "highwater expire --keep 90d", unfilled),
    Case("a lake of an older version to report of", "highwater report", lake),
    Case(
        "a lake that may not be written",
        "highwater parse",
        all_of(unfilled, removed(f"{DEFAULT_LAKE}/.writer.lock"), changed(DEFAULT_LAKE, 0o555)),
    ),
    Case(
        "a lake with a link in it",
        "highwater parse",
        all_of(unfilled, removed(f"{DEFAULT_LAKE}/gold/violations"), link(f"{DEFAULT_LAKE}/gold/violations", "/etc")),
    ),
    Case("an empty folder to parse", "highwater parse --lake empty", folders("empty")),
    Case("no lake", "highwater tables"),
    Case("no lake to report of", "highwater report"),
    Case("no lake to ask", "highwater incidents"),
    Case("no lake to judge", "highwater gate"),
    Case("no lake to parse", "highwater parse"),
    Case("no lake to replay", "highwater replay"),
    Case("no lake to look after", "highwater maintain"),
    Case("no lake to expire", "highwater expire --keep 90d"),
    Case("no lake to bundle", "highwater bundle"),
    Case("no lake to check", "highwater quality"),
    Case("no lake to query", "highwater sql 'select 1'"),
    Case("no lake to read metrics of", "highwater metrics"),
    Case("an empty folder for a lake", "highwater tables --lake empty", folders("empty")),
    Case("a file for a lake", "highwater audit logs --lake lake", files({"lake": b""})),
    Case("a file for a lake that is asked", "highwater tables --lake lake", files({"lake": b""})),
    Case("a lake without gold that is asked", "highwater incidents", all_of(lake, removed(f"{DEFAULT_LAKE}/gold"))),
    Case(
        "a lake in a folder that may not be written", "highwater audit logs --lake box/lake", folders("box", mode=0o555)
    ),
    Case("a lake that may not be read", "highwater tables", all_of(lake, changed(DEFAULT_LAKE, 0))),
    Case(
        "a lake of a newer version",
        "highwater tables",
        all_of(lake, files({f"{DEFAULT_LAKE}/_highwater/program.json": b'{"version": "99.0.0"}'})),
    ),
    Case(
        "a note of the version that is damaged",
        "highwater tables",
        all_of(lake, files({f"{DEFAULT_LAKE}/_highwater/program.json": b"{"})),
    ),
    Case(
        "a damaged commit of a table",
        "highwater sql 'select * from gold_violations'",
        all_of(lake, files({f"{DEFAULT_LAKE}/gold/violations/_delta_log/00000000000000000000.json": b"{"})),
    ),
    Case(
        "a table without its files",
        "highwater sql 'select * from gold_violations'",
        all_of(
            lake,
            lambda folder: (
                [path.unlink() for path in (folder / DEFAULT_LAKE / "gold" / "violations").glob("*.parquet")] and None
            ),
        ),
    ),
    Case("a report in place of a file", "highwater report --out report", all_of(lake, files({"report": b""}))),
    Case(
        "a report in a folder that may not be written",
        "highwater report --out box/report",
        all_of(lake, folders("box", mode=0o555)),
    ),
    Case("a lake in a store that is not supported", "highwater tables --lake dbfs:/lake"),
)

CONFIGURATION = (
    Case("a configuration in the lake", "highwater audit logs --lake . --conf site.toml", conf("")),
    Case("no such file", "highwater audit logs --conf site.toml"),
    Case("a folder", "highwater audit logs --conf logs"),
    Case(
        "a file that may not be read",
        "highwater audit logs --conf site.toml",
        all_of(conf(""), changed("site.toml", 0)),
    ),
    Case("no TOML", "highwater audit logs --conf site.toml", conf("[session\n")),
    Case("bytes that are no text", "highwater audit logs --conf site.toml", files({"site.toml": b"\xff\xfe"}, 0o600)),
    Case("a section that there is not", "highwater audit logs --conf site.toml", conf("[sesion]\nmaster = 'local'\n")),
    Case("a key that there is not", "highwater audit logs --conf site.toml", conf("[replay]\ntolerance = 5\n")),
    Case("a value of another type", "highwater audit logs --conf site.toml", conf("[replay]\ntolerance_ms = '5'\n")),
    Case("a value that is too small", "highwater audit logs --conf site.toml", conf("[latency]\ninterval_s = 0\n")),
    Case(
        "a value that is none of those allowed",
        "highwater audit logs --conf site.toml",
        conf("[replay]\nevidence_tier_max = 'T4'\n"),
    ),
    Case("memory without a unit", "highwater audit logs --conf site.toml", conf("[session]\ndriver_memory = '4'\n")),
    Case(
        "a time zone that there is not", "highwater audit logs --conf site.toml", conf("[ingest]\ntimezone = 'CEST'\n")
    ),
    Case(
        "a time zone of Spark's",
        "highwater audit logs --conf site.toml",
        conf("[session.spark]\n'spark.sql.session.timeZone' = 'CET'\n"),
    ),
    Case(
        "a severity of a rule that there is not",
        "highwater audit logs --conf site.toml",
        conf("[audit.severity]\ncomitted-data-lost = 'off'\n"),
    ),
    Case(
        "a severity that there is not",
        "highwater audit logs --conf site.toml",
        conf("[audit.severity]\ncommitted-data-lost = 'none'\n"),
    ),
    Case(
        "an expectation that there is not",
        "highwater audit logs --conf site.toml",
        conf("[quality.severity]\nno-such = 'off'\n"),
    ),
    Case(
        "days without a unit",
        "highwater expire --conf site.toml",
        all_of(lake, conf("[retention]\nbronze_keep = '30'\n")),
    ),
    Case(
        "gold shorter than silver",
        "highwater expire --conf site.toml",
        all_of(lake, conf("[retention]\ngold_keep = '3d'\nsilver_keep = '30d'\nbronze_keep = '30d'\n")),
    ),
    Case(
        "a folder of logs in a store that is not supported",
        "highwater audit logs --conf site.toml",
        conf("[ingest.clusters]\n'dbfs:/logs' = 'east'\n"),
    ),
    Case(
        "HIGHWATER_CONF of a file that is not there",
        "highwater audit logs",
        environment={"HIGHWATER_CONF": "site.toml"},
    ),
)


def old_java(folder: Path) -> None:
    """An installation of Java 8."""
    files({"java8/bin/java": b"#!/bin/sh\nexit 1\n"}, 0o755)(folder)
    files({"java8/release": b'JAVA_VERSION="1.8.0_402"\n'})(folder)


def broken_java(folder: Path) -> None:
    """A Java that cannot be run."""
    files({"java/bin/java": b"#!/bin/sh\necho 'bad library' >&2\nexit 127\n"}, 0o755)(folder)


OF_MACHINE = (
    Case("JAVA_HOME without a Java", "highwater audit logs", environment={"JAVA_HOME": "no-java"}),
    Case("Java 8", "highwater audit logs", old_java, environment={"JAVA_HOME": "java8"}),
    Case("a Java that does not run", "highwater audit logs", broken_java, environment={"JAVA_HOME": "java"}),
    Case(
        "no network for the jars",
        "highwater audit logs",
        folders("jars"),
        environment={"HIGHWATER_JARS": "jars", "HIGHWATER_MAVEN": NOWHERE},
    ),
    Case(
        "a folder of jars that is not there",
        "highwater audit logs",
        environment={"HIGHWATER_JARS": "no-jars", "HIGHWATER_MAVEN": NOWHERE},
    ),
    Case(
        "jars that are not those of the lock",
        "highwater doctor --fetch",
        all_of(folders("jars"), *(files({f"maven/{jar.address}": b"no jar"}) for jar in read_locked(DELTA))),
        environment={"HIGHWATER_JARS": "jars", "HIGHWATER_MAVEN": "file://FOLDER/maven"},
    ),
    Case(
        "rows on a full disk",
        'highwater sql "select * from range(100000)" --format csv --out disk/rows.csv',
        all_of(lake, folders("disk")),
        around=DISK,
    ),
    Case(
        "longer files than the shell allows",
        'highwater sql "select * from range(100000)" --format csv --out rows.csv',
        lake,
        around="ulimit -f 8; {}",
    ),
    Case("stdout on a full disk", "highwater tables > /dev/full", lake),
    Case("a closed stdout", "highwater tables >&-", lake, ExitCode.CLEAN),
)

#: Of processes: pipes, signals, two at once.
TOGETHER = (
    Case("output to head", "highwater explain | head -n 1", code=ExitCode.CLEAN),
    Case("output to a program that does not read it", "highwater explain --markdown | true", code=ExitCode.CLEAN),
    Case(
        "a lake that another run writes",
        "highwater parse --conf site.toml",
        all_of(unfilled, files({f"{DEFAULT_LAKE}/.writer.lock": HOLDER}), conf("[session]\nlock_wait_s = 0\n")),
        around=f"flock --close {DEFAULT_LAKE}/.writer.lock {{}}",
    ),
    Case(
        "a lake that is looked after while another run writes it",
        "highwater expire --keep 1d --conf site.toml",
        all_of(audited, files({f"{DEFAULT_LAKE}/.writer.lock": HOLDER}), conf("[session]\nlock_wait_s = 0\n")),
        around=f"flock --close {DEFAULT_LAKE}/.writer.lock {{}}",
        is_spark=True,
    ),
    Case(
        "Ctrl-C while Spark starts",
        "highwater audit logs",
        code=ExitCode.INTERRUPTED,
        around="timeout --foreground --preserve-status --signal INT 8 {}",
        is_spark=True,
    ),
)

AFTER_AN_AUDIT = (
    Case(
        "a window that begins after the last line",
        "highwater gate --from 2031-01-01",
        audited,
        ExitCode.INCONCLUSIVE,
        is_spark=True,
    ),
    Case("metrics of a time without lines", "highwater metrics --from 2031-01-01", audited, is_spark=True),
    Case(
        "metrics in a folder that may not be written",
        "highwater metrics --out box/metrics",
        all_of(audited, folders("box", mode=0o555)),
        is_spark=True,
    ),
    Case("a cluster that there is not", "highwater incidents --cluster east", audited, is_spark=True),
    Case("a comparison with a lake that is not there", "highwater compare .. other-lake", audited, is_spark=True),
    Case(
        "a bundle in place of a folder",
        "highwater bundle --out archive",
        all_of(audited, folders("archive")),
        is_spark=True,
    ),
    Case(
        "a bundle in a folder that may not be written",
        "highwater bundle --out box/bundle.zip",
        all_of(audited, folders("box", mode=0o555)),
        is_spark=True,
    ),
    Case(
        "a report on a full disk",
        "highwater report --out disk/report",
        all_of(audited, folders("disk")),
        around=DISK,
        is_spark=True,
    ),
    Case(
        "a report of longer files than the shell allows",
        "highwater report",
        audited,
        around="ulimit -f 8; {}",
        is_spark=True,
    ),
    Case("a file that is not in quarantine", "highwater quality --release 0123abcd", audited, is_spark=True),
    Case(
        "logs that are none",
        "highwater audit noise",
        files({"noise/server.log": bytes(range(256)) * 64}),
        is_spark=True,
    ),
    Case(
        "logs of something else",
        "highwater audit web",
        files({"web/access.log": b'10.0.0.1 - - [20/Nov/2026:15:34:05 +0000] "GET / HTTP/1.1" 200 12\n' * 50}),
        is_spark=True,
    ),
    Case("a lake on a full disk", "highwater audit logs --lake disk/lake", folders("disk"), around=DISK, is_spark=True),
    Case("a master that there is not", "highwater audit logs --master yarm", is_spark=True),
    Case(
        "more memory than there is",
        "highwater audit logs --conf site.toml",
        conf("[session]\ndriver_memory = '900000g'\n"),
        is_spark=True,
    ),
)


def prepared(folder: Path) -> None:
    """What every case meets: logs, a HOME and a TMPDIR."""
    files({"logs/broker-1/server.log": LINE, "home/.keep": b"", "tmp/.keep": b""})(folder)


GROUPS = {
    "The command line": COMMAND_LINE,
    "Questions": QUESTIONS,
    "Logs": LOGS_GIVEN,
    "Lakes and reports": LAKES,
    "The configuration": CONFIGURATION,
    "The machine": OF_MACHINE,
    "Together with others": TOGETHER,
    "After an audit, and within one": AFTER_AN_AUDIT,
}
