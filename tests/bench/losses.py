"""What the audit makes of logs that lack lines: ``python -m tests.bench.losses CORPUS... [--cases N] [--seed N]``.

Logs of a violated cluster never become clean, and no violation appears that the whole logs do not show. Each loss is
judged without Spark (`tests.log_tables`), with all levels (T1) and with default levels (T0). With ``--audit`` all
losses of a corpus are audited at once, as clusters of one lake: some violations need the replay or data directories.
Prints the holes of the whole logs, and a table of figures. Ends with 1 if a verdict became clean, a violation is
false, or whole logs have a hole. What leaves an audit inconclusive counts as a hole, and at default levels a lack of
requests does; so these are only printed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.bench.figures import markdown
from tests.damage import of_its_own
from tests.generators.losses import LOSSES, Logs, Lost, at_default_levels
from tests.log_tables import Judged, judge, read_logs, write_logs

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


def losses_of(logs: Logs, count: int, seed: int) -> Iterator[tuple[str, Lost]]:
    """Yield losses of each kind, with the key of `LOSSES`.

    Args:
        count: number of losses of each kind. Losses without a lost record are left out.
    """
    for kind, lose in LOSSES.items():
        random = Random(f"{seed} {kind}")
        for _ in range(count):
            lost = lose(logs, random)
            if lost is not None and lost.records:
                yield kind, lost


def cases_of(logs: Logs, whole: Judged, count: int, seed: int) -> Iterator[Case]:
    """Yield cases of each kind of loss.

    Args:
        whole: what the audit finds in all logs at all levels.
        count, seed: as of `losses_of`.
    """
    for kind, lost in losses_of(logs, count, seed):
        yield Case(kind, lost, whole, judge(lost.logs))


def audited_cases(corpus: Path, everything: Logs, logs: Logs, count: int, seed: int) -> tuple[Judged, list[Case]]:
    """Return what an audit finds in all logs at all levels, and cases of each kind of loss.

    Args:
        everything: all logs at all levels.
        logs: the logs from which lines are lost.
        count, seed: as of `losses_of`.
    """
    losses = list(losses_of(logs, count, seed))
    with tempfile.TemporaryDirectory() as place:
        whole, *found = audited(corpus, everything, [everything, logs, *(lost.logs for _, lost in losses)], Path(place))
    whole = whole._replace(holes=found[0].holes)
    return whole, [Case(kind, lost, whole, one) for (kind, lost), one in zip(losses, found[1:], strict=True)]


def audited(corpus: Path, everything: Logs, variants: Sequence[Logs], place: Path) -> list[Judged]:
    """Return what one audit finds in variants of the logs of a cluster, each with the data directories.

    Args:
        everything: all logs at all levels.
        place: an empty folder.
    """
    (own_id,) = {log.span.cluster_id for log in everything}
    settings = ["[ingest.clusters]"]
    for number, logs in enumerate(variants):
        folder = place / "logs" / str(number)
        write_logs(logs, everything, corpus, folder)
        for data in corpus.glob("broker-*/data"):
            shutil.copytree(data, folder / data.relative_to(corpus), copy_function=shutil.copyfile)
        of_its_own(folder, own_id.encode(), f"v{number:03}")
        settings.append(f'"{folder}" = "v{number:03}"')
    conf = place / "clusters.toml"
    conf.write_text("\n".join(settings), encoding="utf-8")
    command = [sys.executable, "-m", "highwater", "audit", place / "logs", "--conf", conf]
    ended = subprocess.run(
        [*command, "--lake", place / "lake", "--out", place / "report"], capture_output=True, text=True
    )
    if ended.returncode not in (0, 1, 3):
        raise RuntimeError(ended.stderr)
    report = json.loads((place / "report" / "report.json").read_text(encoding="utf-8"))
    parts = {part["cluster_id"]: part for part in report["clusters"]}
    return [_judged(parts[f"v{number:03}"], report["violations"]) for number in range(len(variants))]


def _judged(part: Mapping[str, Any], violations: Iterable[Mapping[str, Any]]) -> Judged:
    cluster_id = part["cluster_id"]
    own = {(row["rule_id"], row["topic"], row["partition"]) for row in violations if row["cluster_id"] == cluster_id}
    messages = tuple(text.replace(cluster_id, "") for text in part["inconclusive"])
    return Judged(messages, frozenset(own), (), part["verdict"])


def main(arguments: Sequence[str]) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--cases", type=int, default=20, help="cases of each kind of loss")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--audit", action="store_true", help="audit with Spark")
    parser.add_argument("--levels", choices=("T1", "T0"), help="only with all levels, or with default levels")
    parser.add_argument("--verbose", action="store_true", help="print each loss without a trace")
    given = parser.parse_args(arguments)
    rows = []
    is_good = True
    for corpus in given.corpora:
        everything = read_logs(corpus)
        whole = judge(everything)
        for levels, logs in (("T1", everything), ("T0", at_default_levels(everything))):
            if given.levels not in (None, levels):
                continue
            cases: Iterable[Case]
            if given.audit:
                whole, cases = audited_cases(corpus, everything, logs, given.cases, given.seed)
                found = whole
            else:
                found = judge(logs)
                cases = cases_of(logs, whole._replace(holes=found.holes), given.cases, given.seed)
            print(f"{corpus.name} {levels}: {found.verdict}, {len(found.violations)} violations, holes: {found.holes}")
            is_good &= given.audit or not found.holes
            counts: dict[str, Counter[str]] = {kind: Counter() for kind in LOSSES}
            for case in cases:
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
