"""The command as a user runs it, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

ROOT = Path(__file__).parents[2]
SLICE = ROOT / "tests" / "data" / "slice"
CORPORA = ROOT.parent / "shared" / "corpora"
#: Those in which something was lost, and clean ones beside them: nobody else's finding may appear there. No two ran at
#: one time.
LOSSES = ("kip101", "unclean28", "kraft43-faults", "lostwake28")
CLEAN = ("kraft39-faults", "kraft43-ops", "slow28")
ALL = pytest.param((*LOSSES, *CLEAN), id="all", marks=pytest.mark.long)
#: From, until; None where a window has no such bound.
Bounds = tuple[str | None, str | None]


@dataclass(frozen=True)
class Ended:
    """A run of the command, with the report that it left; later runs write over the file."""

    code: int
    out: str
    err: str
    report_dir: Path
    report: dict[str, Any]

    @property
    def complaints(self) -> list[str]:
        """Lines that the command itself wrote of an error."""
        return [line for line in self.err.splitlines() if line.startswith("highwater: ")]


def highwater(folder: Path, *arguments: object, lake: str = "lake", report: str = "report") -> Ended:
    """Run ``highwater`` with its lake and report in a folder."""
    out = folder / report
    verb, *rest = map(str, arguments)
    places = ["--lake", str(folder / lake)]
    if verb in ("audit", "report"):
        places += ["--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "jobs.cli", verb, *rest, *places],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    written = out / "report.json"
    report = orjson.loads(written.read_bytes()) if written.is_file() else {}
    return Ended(done.returncode, done.stdout, done.stderr, out, report)


@pytest.fixture(scope="session")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """The bundled slice, audited once."""
    folder = tmp_path_factory.mktemp("slice")
    return folder, highwater(folder, "audit", SLICE)


def reports(folder: Path, windows: Sequence[Bounds]) -> list[dict[str, Any]]:
    """A report of the folder's lake per window, by one process: starting Spark takes longer than a report."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.e2e.windows", str(folder / "lake"), orjson.dumps(windows).decode()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    collected: list[dict[str, Any]] = orjson.loads(done.stdout)
    return collected


@pytest.fixture(
    scope="session",
    params=[pytest.param(LOSSES, id="losses"), ALL],
)
def corpora(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """Several clusters in one lake, audited once."""
    folder = tmp_path_factory.mktemp("corpora")
    ended = highwater(folder, "audit", *(CORPORA / name for name in request.param))
    assert ended.code == 1, ended.err
    return folder, ended
