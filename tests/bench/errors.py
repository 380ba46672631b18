"""Every wrong use of the command, run: what it says, with which exit code it ends, and that it leaves nothing behind.

    python -m tests.bench.errors                                    says what is wrong with each, and ends with 1 then
    python -m tests.bench.errors --markdown docs/errors.md          writes the document

A case (`tests.bench.wrong_uses`) is a line of a shell in a folder of its own, which also holds its HOME and its TMPDIR.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from highwater.jobs import cli, sessions
from highwater.jobs.exit_codes import ExitCode
from highwater.pipelines.lake.lock import LOCK_NAME
from tests.bench.wrong_uses import GROUPS, Case, prepared

ROOT = Path(__file__).resolve().parents[2]
#: Seconds after which a case hangs.
_TIMEOUT_S = 300
#: What root may do whatever a file's mode says.
_CAPABILITIES = "-dac_override,-dac_read_search"
_COMPLAINT = "highwater: "
#: Of what is said; more is a report, or the list of all rules.
_SAID_MAX = 600
_HEAD = """\
# Wrong uses

Made by `python -m tests.bench.errors --markdown docs/errors.md`, which runs each in a folder of its own and sees that
it ends with one sentence on stderr, which names the thing and, behind `;`, the remedy, with its exit code, and
with nothing in that folder, in HOME or in TMPDIR that was not there before. Exit codes: 0 clean, 1 violated, 2 usage,
configuration, input or environment, 3 inconclusive, 70 a defect of the program, 130 interrupted, 141 nobody reads."""


@dataclass(frozen=True)
class Ended:
    """How a case ended."""

    case: Case
    code: int
    #: out, err: what was printed
    out: str
    err: str
    said: str  #: the sentence on stderr, else what is on stdout, without what differs from run to run
    left: tuple[str, ...]  #: files and folders that were not there before, or were changed, or are gone

    def problems(self) -> Iterator[str]:
        """What is wrong with it."""
        if self.code != self.case.code:
            yield f"ends with {self.code}, not with {self.case.code}"
        if self.left:
            yield f"leaves {', '.join(self.left)}"
        if "Traceback" in self.err:
            yield f"shows a traceback: {self.err}"
        if self.case.code != ExitCode.USAGE or self.case.is_help:
            return
        complaints = [line for line in self.err.splitlines() if line.startswith(_COMPLAINT)]
        if len(complaints) != 1 or self.err.splitlines()[-1:] != complaints:
            yield f"does not end with one sentence: {self.err!r}"
        if not re.search(r"; |\(allowed: ", self.said):
            yield f"names no remedy: {self.said}"
        if self.out:
            yield f"prints {self.out[:200]!r}"

    def row(self) -> str:
        """The row of the document."""
        cells = (self.case.what, f"`{self.case.line}`", self.said, str(int(self.case.code)))
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def run(case: Case, folder: Path) -> Ended:
    """Run a case in an empty folder."""
    prepared(folder)
    case.before(folder)
    before = _state(folder)
    environment: dict[str, str | None] = {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), "COLUMNS": "80"}
    environment["HIGHWATER_CONF"] = None
    environment |= {name: value and value.replace("FOLDER", str(folder)) for name, value in case.environment.items()}
    code, out, err = (_in_shell if case.in_shell else _here)(case, folder, environment)
    after = _state(folder)
    left = tuple(sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name)))
    lines = err.rstrip().splitlines() or [""]
    said = lines[-1].removeprefix(_COMPLAINT) if case.code == ExitCode.USAGE else " ".join((out or err).split())
    said = "its help" if case.is_help else said if len(said) < _SAID_MAX else f"{said[:_SAID_MAX]} ..."
    return Ended(case, code, out, err, _plain(said, folder), left)


def _state(folder: Path) -> dict[str, tuple[int, int]]:
    """What is in a folder: size and time of change of each file; in the lock of a lake runs write who they are."""
    seen = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        seen[str(path.relative_to(folder))] = (
            (0, 0) if path.is_dir() or path.name == LOCK_NAME else (status.st_size, status.st_mtime_ns)
        )
    return seen


def _here(case: Case, folder: Path, environment: Mapping[str, str | None]) -> tuple[int, str, str]:
    """Within this process, where no Spark is started."""
    out, err = io.StringIO(), io.StringIO()
    with (
        chdir(folder),
        mock.patch.dict(os.environ, _environ(environment), clear=True),
        mock.patch.object(tempfile, "tempdir", None),
        mock.patch.object(sessions, "build_session", side_effect=AssertionError("Spark would be started")),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = cli.run(shlex.split(case.line)[1:])
    return code, out.getvalue(), err.getvalue()


def _in_shell(case: Case, folder: Path, environment: Mapping[str, str | None]) -> tuple[int, str, str]:
    """As it is typed, in a process of its own, which may do what any user may."""
    with tempfile.TemporaryDirectory() as bin_dir:
        command = Path(bin_dir) / "highwater"
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m highwater.jobs.cli "$@"\n', encoding="utf-8")
        command.chmod(0o755)
        environ = _environ(environment) | {"PYTHONPATH": str(ROOT)}
        environ["PATH"] = f"{bin_dir}:{environ['PATH']}"
        shell = ["sh", "-c", (case.around or "{}").format(case.line)]
        if os.geteuid() == 0 and not case.around:
            shell = ["setpriv", f"--bounding-set={_CAPABILITIES}", *shell]
        done = subprocess.run(
            shell, cwd=folder, env=environ, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    return done.returncode, done.stdout, done.stderr


def _environ(changes: Mapping[str, str | None]) -> dict[str, str]:
    merged = {**os.environ, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def _plain(said: str, folder: Path) -> str:
    said = said.replace(f"{folder.resolve()}/", "").replace(f"{folder}/", "")
    said = re.sub(r"process \d+ on \S+, since [\d: -]+ UTC", "process 4711 on HOST, since TIME", said)
    said = re.sub(r"in [\d.]+m?s, after", "in some seconds, after", said)
    said = re.sub(r"install Java 17 or later \(.*?\)", "install Java 17 or later (by this system's command)", said)
    return re.sub(r"this is \d+\.\d+\.\d+", "this is VERSION", said)


def document(rows: Mapping[str, list[str]]) -> str:
    """The tables, by group."""
    parts = [_HEAD]
    for title, of_group in rows.items():
        parts += [f"\n## {title}", "| what is wrong | command | it says | exit code |", "|---|---|---|---:|", *of_group]
    return "\n".join(parts) + "\n"


def _rows(document: Path) -> dict[str, list[str]]:
    """Rows of the document by what is wrong."""
    lines = document.read_text(encoding="utf-8").splitlines() if document.is_file() else []
    return {line.split(" | ")[0].removeprefix("| "): [line] for line in lines if line.startswith("| ")}


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--only", default="", help="cases that have this in their words")
    parser.add_argument("--quick", action="store_true", help="not those that start Spark; their rows stay")
    given = parser.parse_args()
    rows: dict[str, list[str]] = {title: [] for title in GROUPS}
    written = _rows(given.markdown) if given.markdown and given.quick else {}
    wrong = 0
    for title, cases in GROUPS.items():
        for case in (case for case in cases if given.only in case.what):
            if given.quick and case.is_spark:
                rows[title] += written.get(case.what, [])
                continue
            with tempfile.TemporaryDirectory(prefix="highwater-errors-") as scratch:
                one = run(case, Path(scratch))
            rows[title].append(one.row())
            print(f"{case.what}: {case.line}\n    [{one.code}] {one.said}", flush=True)
            for problem in one.problems():
                wrong += 1
                print(f"    WRONG {problem}", flush=True)
    if given.markdown:
        given.markdown.write_text(document(rows), encoding="utf-8")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
