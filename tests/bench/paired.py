"""What an audit costs beside an earlier commit: ``python -m tests.bench.paired COMMIT LOGS... [--pairs 3]``

    python -m tests.bench.paired 2a96dcf tests/data/slice ../shared/corpora/kraft39-faults

Each folder of logs is audited by this checkout and by one of the commit, in turn, in processes and lakes of their own,
with this environment. CPU seconds are those of the whole process tree (the kernel gives orphans to the measuring
process, which waits for all), and ratios are pair by pair, since the speed of a machine drifts; the table has medians.
The first folder is audited once by each before the pairs: what is done once for a machine is done then.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median

from tests.bench.figures import insert, markdown

ROOT = Path(__file__).resolve().parents[2]
_HEADS = ("input", "CPU s before", "CPU s now", "ratio", "wall s before", "wall s now", "ratio")
_CHILD_SUBREAPER = 36


def measured(checkout: Path, logs: str) -> tuple[float, float]:
    """CPU and wall seconds of one audit, in a process of its own that waits for whatever the audit starts.

    Raises:
        SystemExit: the audit ended with none of the codes of a verdict.
    """
    command = [sys.executable, __file__, "--measure", str(checkout), logs]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    if done.returncode != 0:
        sys.exit(f"the audit of {logs} by {checkout} failed: {done.stderr[-2000:]}")
    cpu_s, wall_s = map(float, done.stdout.split())
    return cpu_s, wall_s


def _measure(checkout: str, logs: str) -> None:
    ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "jobs.cli",
            "audit",
            logs,
            "--lake",
            f"{folder}/lake",
            "--out",
            f"{folder}/out",
        ]
        began = time.monotonic()
        audit = subprocess.Popen(
            command, cwd=checkout, env=os.environ | {"PYTHONPATH": checkout}, stdout=subprocess.DEVNULL, stderr=2
        )
        code = audit.wait()
        while True:
            try:
                os.wait()
            except ChildProcessError:
                break
        if code not in (0, 1, 3):
            sys.exit(f"exit code {code}")
        used = getrusage(RUSAGE_CHILDREN)
        print(used.ru_utime + used.ru_stime, time.monotonic() - began)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.paired", description=__doc__)
    parser.add_argument("commit")
    parser.add_argument("logs", nargs="+")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--markdown", type=Path, metavar="DOCUMENT", help="put the table there, between its marks")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.measure:
        _measure(given.commit, given.logs[0])
        return 0
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "checkout"
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--quiet", "--detach", before, given.commit], check=True)
        try:
            for checkout in (before, ROOT):
                measured(checkout, str(Path(given.logs[0]).resolve()))
            rows = [_row(before, str(Path(logs).resolve()), given.pairs) for logs in given.logs]
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", before], check=True)
    table = markdown(_HEADS, rows)
    print("\n".join(table))
    if given.markdown:
        insert(given.markdown, table, "paired")
    return 0


def _row(before: Path, logs: str, pairs: int) -> list[str]:
    taken = [(measured(before, logs), measured(ROOT, logs)) for _ in range(pairs)]
    cells = [Path(logs).name]
    for which in (0, 1):
        values = [(of_before[which], of_now[which]) for of_before, of_now in taken]
        cells += [f"{median(earlier for earlier, _ in values):.1f}", f"{median(now for _, now in values):.1f}"]
        cells.append(f"{median(now / earlier for earlier, now in values):.2f}")
    return cells


if __name__ == "__main__":
    sys.exit(main())
