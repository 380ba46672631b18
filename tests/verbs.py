"""Verbs of the command as a user gives them: in a process of their own, or within a session that is there already.

The answers are the same. A process has a JVM to start and to warm up, which takes longer than a small audit itself.
"""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import click
import orjson
from pyspark.sql import SparkSession

from highwater.jobs import cli, sessions

ROOT = Path(__file__).parents[1]
SLICE = ROOT / "tests" / "data" / "slice"
CORPORA = ROOT.parent / "shared" / "corpora"


@dataclass(frozen=True)
class Ended:
    """A verb that has ended, with the report that it left; later ones write over the file."""

    code: int
    out: str
    err: str
    report_dir: Path
    report: dict[str, Any]

    @property
    def complaints(self) -> list[str]:
        """Lines that the command itself wrote of an error."""
        return [line for line in self.err.splitlines() if line.startswith("highwater: ")]


def in_process(folder: Path, *arguments: object, lake: str = "lake", report: str = "report") -> Ended:
    """Run ``highwater`` with its lake and report in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "highwater.jobs.cli", *_placed(folder, arguments, lake, report)],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return _ended(done.returncode, done.stdout, done.stderr, folder / report)


def in_session(
    spark: SparkSession, folder: Path, *arguments: object, lake: str = "lake", report: str = "report"
) -> Ended:
    """Run it in this process; a verb that asks for a session is given this one, which it cannot stop."""
    out, err = io.StringIO(), io.StringIO()
    with _given(spark), redirect_stdout(out), redirect_stderr(err):
        code = cli.run(_placed(folder, arguments, lake, report))
    return _ended(code, out.getvalue(), err.getvalue(), folder / report)


#: Options whose values are places.
_PLACES = ("--lake", "--out", "--docs", "--folder", "--openmetrics")


def as_printed(spark: SparkSession, folder: Path, line: str) -> Ended:
    """Run a line of a shell as if in a folder: the session's JVM is in another one, so places are named whole."""
    words = shlex.split(line)[1:]
    verb = cli.highwater.commands[words[0]]
    of_verb = verb.commands[words[1]] if isinstance(verb, click.Group) else verb
    for option in of_verb.params:
        if option.opts[0] in _PLACES and option.opts[0] not in words and isinstance(option.default, str):
            words += [option.opts[0], str(option.default)]
    placed = [
        str(folder / word) if before in _PLACES or word.split("/")[0] == "logs" else word
        for before, word in zip(["", *words], words, strict=False)
    ]
    out, err = io.StringIO(), io.StringIO()
    with _given(spark), redirect_stdout(out), redirect_stderr(err):
        code = cli.run(placed)
    return _ended(code, out.getvalue(), err.getvalue(), folder / "highwater-report")


@contextmanager
def _given(spark: SparkSession) -> Iterator[None]:
    with mock.patch.object(sessions, "build_session", return_value=spark), mock.patch.object(SparkSession, "stop"):
        yield


def _placed(folder: Path, arguments: tuple[object, ...], lake: str, report: str) -> list[str]:
    verb, *rest = map(str, arguments)
    places = ["--lake", str(folder / lake)]
    if verb in ("audit", "report"):
        places += ["--out", str(folder / report)]
    return [verb, *rest, *places]


def _ended(code: int, out: str, err: str, report_dir: Path) -> Ended:
    written = report_dir / "report.json"
    report = orjson.loads(written.read_bytes()) if written.is_file() else {}
    return Ended(code, out, err, report_dir, report)
