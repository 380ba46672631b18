"""Every example of every --help does what it shows, where `logs` is the folder of the bundled logs."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from highwater.jobs.demo import LOGS
from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.help import EXAMPLES, GROUPS
from tests.bench.front_door import README, head_of, shown_in
from tests.verbs import Ended, as_printed

LOST = "LOST: 1 acknowledged record of ledger-0 (offset 118), 2026-11-20 15:40:30 UTC."
#: Of the lake that `highwater audit logs` makes: a shell's own words cannot be run here.
ASKED = [
    example
    for group, verbs in GROUPS.items()
    for verb in (*verbs, *(name for name in EXAMPLES if name.partition(" ")[0] in verbs and " " in name))
    for example in EXAMPLES[verb]
    if not verb.startswith(("demo", "completion", "audit", "airflow"))
]


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a user is who has audited the bundled logs."""
    made = tmp_path_factory.mktemp("user")
    (made / "logs").symlink_to(LOGS)
    return made


@pytest.fixture(scope="module")
def audited(spark: SparkSession, folder: Path) -> list[Ended]:
    """The examples of `audit`."""
    return [as_printed(spark, folder, example) for example in EXAMPLES["audit"]]


def test_the_lost_record_is_found(audited: list[Ended]) -> None:
    assert [ended.code for ended in audited] == [ExitCode.VIOLATED, ExitCode.VIOLATED]
    assert all(LOST in ended.out for ended in audited)


@pytest.mark.parametrize("example", ASKED)
def test_examples(example: str, spark: SparkSession, folder: Path, audited: list[Ended]) -> None:
    ended = as_printed(spark, folder, example)
    assert ended.code in (ExitCode.CLEAN, ExitCode.VIOLATED), ended.err
    assert ended.out or ended.err  # steps for a scheduler have nothing to say but what they did
    if ended.code == ExitCode.VIOLATED:
        assert example.split()[1] in ("report", "gate")


def test_the_demo_says_what_to_look_at(spark: SparkSession, folder: Path) -> None:
    first = as_printed(spark, folder, "highwater demo --no-open")
    assert first.code == ExitCode.CLEAN, first.err
    assert LOST in first.out
    shown = shown_in(README.read_text(encoding="utf-8"))
    assert head_of(first.out) == shown, "run `python -m tests.bench.front_door`"
    told = first.out.partition("what to look at")[2].splitlines()
    commands = [line[line.index("highwater ") :] for line in told if "  highwater " in line]
    assert len(commands) == 3
    for command in commands[:2]:
        assert as_printed(spark, folder, command).code == ExitCode.CLEAN
    assert (folder / "highwater-demo" / "report" / "report.html").is_file()
