"""What the audit makes of logs that lack lines: ``python -m tests.bench.losses CORPUS... [--cases N] [--seed N]``.

Logs of a violated cluster never become clean, and no violation appears that the whole logs do not show. Each loss is
judged without Spark (`tests.log_tables`), with all levels (T1) and with default levels (T0). Prints the holes of the
whole logs, and a table of figures. Ends with 1 if a verdict became clean, a violation is false, or whole logs have a
hole.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.bench.figures import markdown
from tests.generators.losses import LOSSES, Logs, Lost, at_default_levels
from tests.log_tables import Judged, judge, read_logs

HEADS = ("corpus", "levels", "loss", "cases", "became clean", "false violations", "holes seen", "no trace")


class Case(NamedTuple):
    """A loss, and what the audit finds after it."""

    kind: str  #: Key of `LOSSES`.
    lost: Lost
    whole: Judged
    found: Judged

    def __str__(self) -> str:
        lost = f"{self.kind}: {self.lost.what}, {self.lost.records} records"
        return f"{lost}: {self.whole.verdict} became {self.found.verdict}, {sorted(self.found.violations)}"

    @property
    def is_seen(self) -> bool:
        """Return True if the audit names a hole that the whole logs do not have."""
        return bool(set(self.found.holes) - set(self.whole.holes))

    @property
    def became_clean(self) -> bool:
        """Return True if a violated cluster is clean after the loss."""
        return self.whole.verdict == "violated" and self.found.verdict == "clean"

    @property
    def has_false_violations(self) -> bool:
        """Return True if there is a violation that the whole logs do not show."""
        return not self.found.violations <= self.whole.violations


def cases_of(logs: Logs, whole: Judged, count: int, seed: int) -> Iterator[Case]:
    """Yield cases of each kind of loss.

    Args:
        whole: what the audit finds in all logs at all levels.
        count: number of cases of each kind. Losses without a lost record are left out.
    """
    for kind, lose in LOSSES.items():
        random = Random(f"{seed} {kind}")
        for _ in range(count):
            lost = lose(logs, random)
            if lost is not None and lost.records:
                yield Case(kind, lost, whole, judge(lost.logs))


def main(arguments: Sequence[str]) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--cases", type=int, default=20, help="cases of each kind of loss")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="print each loss without a trace")
    given = parser.parse_args(arguments)
    rows = []
    is_good = True
    for corpus in given.corpora:
        everything = read_logs(corpus)
        whole = judge(everything)
        for levels, logs in (("T1", everything), ("T0", at_default_levels(everything))):
            found = judge(logs)
            print(f"{corpus.name} {levels}: {found.verdict}, {len(found.violations)} violations, holes: {found.holes}")
            is_good &= not found.holes
            counts: dict[str, Counter[str]] = {kind: Counter() for kind in LOSSES}
            for case in cases_of(logs, whole._replace(holes=found.holes), given.cases, given.seed):
                named = {"became clean": case.became_clean, "false violations": case.has_false_violations}
                named |= {"holes seen": case.is_seen, "no trace": not case.is_seen}
                counts[case.kind].update(["cases", *(name for name, is_so in named.items() if is_so)])
                bad = [name for name in HEADS[4:6] if named[name]]
                is_good &= not bad
                if bad or (given.verbose and not case.is_seen):
                    print(f"{corpus.name} {levels} {case}", flush=True)
            rows += [
                (corpus.name, f"{levels}, {found.verdict}", kind, *(count[head] for head in HEADS[3:]))
                for kind, count in counts.items()
                if count
            ]
    total = ("all", "", "", *(sum(row[place] for row in rows) for place in range(3, len(HEADS))))
    print("\n".join(markdown(HEADS, [[str(cell) for cell in row] for row in [*rows, total]])))
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
