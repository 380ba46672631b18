"""What an audit costs beside an earlier commit: ``python -m tests.bench.paired COMMIT LOGS... [--pairs 3]``

    python -m tests.bench.paired 2a96dcf tests/data/slice ../shared/corpora/kraft39-faults

Each folder of logs is audited by this checkout and by one of the commit, in turn, in processes and lakes of their
own, with this environment. CPU seconds are those of the whole process tree, and ratios are pair by pair, since the
speed of a machine drifts; the table has medians. The first folder is audited once by each before the pairs: what is
done once for a machine is done then.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tests.bench.figures import insert, markdown
from tests.bench.performance import watched

ROOT = Path(__file__).resolve().parents[2]
_HEADS = ("input", "CPU s before", "CPU s now", "ratio", "wall s before", "wall s now", "ratio")


def measured(checkout: Path, logs: str) -> tuple[float, float]:
    """CPU and wall seconds of one audit.

    Raises:
        SystemExit: the audit ended with none of the codes of a verdict.
    """
    with tempfile.TemporaryDirectory() as scratch:
        places = ["--lake", f"{scratch}/lake", "--out", f"{scratch}/out"]
        usage = watched([sys.executable, "-m", "highwater", "audit", logs, *places], Path(scratch, "printed"), checkout)
    return sum(usage.core_s.values()), usage.seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.paired", description=__doc__)
    parser.add_argument("commit")
    parser.add_argument("logs", nargs="+")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--markdown", type=Path, metavar="DOCUMENT", help="put the table there, between its marks")
    given = parser.parse_args(arguments)
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
