"""Audits corpora in one lake, for every audit has its fixed costs, and compares each with its truth."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.testbed.audited import read_audit, read_metrics
from tests.testbed.compare import Check, compare
from tests.testbed.compare_metrics import INTERVAL_S, compare_metrics, read_exposed
from tests.testbed.history import read_history

HEADS = ("what", "true", "the audit says", "")
#: Verdicts, as exit codes of the command.
VERDICTS = (0, 1, 3)
WIDTH_MAX = 60
TIMEOUT_S = 900


class AuditError(Exception):
    """The audit did not come to a verdict."""


def check(corpora: Sequence[Path], folder: Path) -> dict[Path, list[Check]]:
    """Audit and compare; the lake, the report and what the command printed stay in the folder.

    Raises:
        AuditError: the command ended with another code than those of verdicts.
    """
    lake = _audit(corpora, folder)
    return {corpus: compare(read_history(corpus), read_audit(lake, corpus)) for corpus in corpora}


def metrics_checks(corpus: Path, folder: Path) -> list[Check]:
    """Audit a corpus and compare its metrics with those that its brokers exposed.

    Raises:
        AuditError: as `check`.
        ValueError: nobody read them while the cluster ran.
    """
    exposed = read_exposed(corpus)
    lake = _audit([corpus], folder)
    return compare_metrics(exposed, read_metrics(lake, INTERVAL_S))


def _audit(corpora: Sequence[Path], folder: Path) -> Path:
    """The lake of an audit of corpora."""
    lake, said = folder / "lake", folder / "audit.txt"
    shutil.rmtree(lake, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    places = ["--lake", str(lake), "--out", str(folder / "report")]
    command = [sys.executable, "-m", "highwater.jobs.cli", "audit", *map(str, corpora), *places]
    with said.open("w", encoding="utf-8") as output:
        done = subprocess.run(command, stdout=output, stderr=output, timeout=TIMEOUT_S, check=False)
    if done.returncode not in VERDICTS:
        raise AuditError(f"{' '.join(command)} ended with {done.returncode}; see {said}")
    return lake


def table(checks: Sequence[Check]) -> str:
    """One line per check; what differs is marked, and only there a long text is whole."""
    rows = [HEADS, *(_cells(check) for check in checks)]
    widths = [min(WIDTH_MAX, max(len(row[n]) for row in rows)) for n in range(3)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, (*widths, 0), strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def _cells(check: Check) -> tuple[str, str, str, str]:
    return check.what, check.true, check.audited, "" if check.agrees else "DIFFERS"
