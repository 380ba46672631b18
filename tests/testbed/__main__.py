"""Real clusters on loopback.

    python -m tests.testbed run 3.6.2 --corpus .testbed/corpora/matrix-3.6.2     runs one and packs its logs
    python -m tests.testbed check .testbed/corpora/matrix-3.6.2                  audits it, compares with what was done
    python -m tests.testbed metrics .testbed/corpora/brief-3.6.2              compares metrics with those read by --jmx

`run` needs clients of Kafka and no Spark, `check` the audit: two environments (`make cluster` knows both).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.testbed.release import KRAFT, ZOOKEEPER, Release

FOLDER = Path(".testbed")


def main(arguments: list[str]) -> int:
    """Run or check; the exit code is 1 where an audit does not agree with the truth."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.testbed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(required=True)
    running = verbs.add_parser("run", help="run a cluster and pack its logs")
    running.add_argument("releases", nargs="+", metavar="RELEASE", help="such as 3.6.2; two for an upgrade")
    running.add_argument("--scenario", default="matrix")
    running.add_argument("--mode", choices=(ZOOKEEPER, KRAFT), default="", help="default: the usual one")
    running.add_argument("--seed", type=int, default=1, help="decides on brokers and times")
    running.add_argument("--tier", choices=("T1", "T3"), default="T1", help="log levels")
    running.add_argument("--minutes", type=float, default=10, help="of the scenario rotation")
    running.add_argument("--jmx", action="store_true", help="read the brokers' metrics every five seconds")
    running.add_argument("--corpus", type=Path, required=True, help="folder to make")
    running.add_argument("--folder", type=Path, default=FOLDER, help="for jars and the run's own files")
    running.set_defaults(verb=_run)
    checking = verbs.add_parser("check", help="audit corpora and compare")
    checking.add_argument("corpora", nargs="+", type=Path)
    checking.add_argument("--folder", type=Path, default=FOLDER / "audit", help="for the lake and the report")
    checking.set_defaults(verb=_check)
    measuring = verbs.add_parser(
        "metrics", help="audit a corpus made with --jmx, compare its metrics with those exposed"
    )
    measuring.add_argument("corpus", type=Path)
    measuring.add_argument("--folder", type=Path, default=FOLDER / "metrics", help="for the lake and the report")
    measuring.set_defaults(verb=_metrics)
    given = parser.parse_args(arguments)
    verb: int = given.verb(given)
    return verb


def _run(given: argparse.Namespace) -> int:
    from tests.testbed.fetch import FetchError
    from tests.testbed.processes import Interrupted, StartError
    from tests.testbed.scenarios.catalog import ScenarioError, run_scenario
    from tests.testbed.scenarios.run import Request

    try:
        request = Request(
            scenario=given.scenario,
            releases=tuple(map(Release.parse, given.releases)),
            mode=given.mode,
            seed=given.seed,
            tier=given.tier,
            minutes=given.minutes,
            jmx=given.jmx,
            run=given.folder.resolve() / "runs" / given.corpus.name,
            jars=given.folder.resolve() / "jars",
        )
        run_scenario(request, given.corpus)
    except (FetchError, Interrupted, ScenarioError, StartError, ValueError) as error:
        sys.stderr.write(f"testbed: {error}\n")
        return 2
    return 0


def _check(given: argparse.Namespace) -> int:
    from tests.testbed.check import check, table

    differ = 0
    for corpus, checks in check(given.corpora, given.folder).items():
        agree = sum(comparison.agrees for comparison in checks)
        differ += len(checks) - agree
        print(f"{corpus.name}: {agree} of {len(checks)} agree\n{table(checks)}\n")
    return 1 if differ else 0


def _metrics(given: argparse.Namespace) -> int:
    from tests.testbed.check import metrics_checks, table

    checks = metrics_checks(given.corpus, given.folder)
    print(table(checks))
    return 1 if any(not check.agrees for check in checks) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
