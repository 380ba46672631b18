"""Audits a corpus in a lake of its own, and prints how the audit compares with the truth."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from testbed.audited import read_audit
from testbed.compare import Check, compare
from testbed.history import read_history

HEADS = ("what", "true", "the audit says", "")
#: Verdicts, as exit codes of the command.
VERDICTS = (0, 1, 3)
WIDTH_MAX = 60
TIMEOUT_S = 900


class AuditError(Exception):
    """The audit did not come to a verdict."""


def check(corpus: Path, lakes: Path) -> list[Check]:
    """Audit and compare; the lake and the report stay beside each other.

    Raises:
        AuditError: the command ended with another code than those of verdicts.
    """
    lake, report = lakes / corpus.name, lakes / f"{corpus.name}-report"
    shutil.rmtree(lake, ignore_errors=True)
    lake.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "jobs.cli", "audit", str(corpus), "--lake", str(lake), "--out", str(report)]
    with report.with_suffix(".txt").open("w") as said:
        done = subprocess.run(command, stdout=said, stderr=said, timeout=TIMEOUT_S, check=False)
    if done.returncode not in VERDICTS:
        raise AuditError(f"{' '.join(command)} ended with {done.returncode}; see {report.with_suffix('.txt')}")
    return compare(read_history(corpus), read_audit(lake, report))


def table(checks: Sequence[Check]) -> str:
    """One line per check; what differs is marked, and only there a long text is whole."""
    rows = [HEADS, *(_cells(check) for check in checks)]
    widths = [min(WIDTH_MAX, max(len(row[n]) for row in rows)) for n in range(3)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, (*widths, 0), strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def _cells(check: Check) -> tuple[str, str, str, str]:
    return check.what, check.true, check.told, "" if check.agrees else "DIFFERS"
