"""``highwater demo``: the bundled logs, in which an acknowledged record is lost.

They are a cut of a real run of Kafka 0.10.2 (KIP-101): two minutes of four brokers, and their data directories.
`tests/data/cut_demo.py` is how they were cut.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

from highwater.jobs import steps
from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.page import PAGE, open_page
from highwater.pipelines.base.console import Console
from highwater.pipelines.base.errors import LakeError
from highwater.pipelines.base.plain import PROSE_WIDTH

LOGS = Path(__file__).parent / "demo_logs"
_GONE = (
    "One record that broker 1 had acknowledged (acks=all) is gone: broker 1 was killed, broker 3 dropped the record "
    "when it began to follow broker 2, and was elected itself. Kafka before 0.11 does that (KIP-101)."
)
#: What is lost: the rule, the partition, the offset.
LOST = ("committed-data-lost", "ledger", 0, 118)


def demo(run: steps.Run, opens: bool) -> ExitCode:
    """Audit the bundled logs, say what to look at, and open the page.

    Raises:
        LakeError: the audit did not find the record that is lost in them.
    """
    report = steps.audited(run, [LOGS])
    if LOST not in {(case.rule_id, case.topic, case.partition, case.offset_start) for case in report.violations}:
        raise LakeError("the lost record of the bundled logs was not found: this highwater does not work here")
    tell(run.console, run)
    if opens:
        open_page(run.console, run.out)
    return ExitCode.CLEAN


def tell(console: Console, run: steps.Run) -> None:
    """Print the parts of the report to look at, and the next commands."""
    lake = f"--lake {run.lake}"
    gone = fill(_GONE, PROSE_WIDTH, initial_indent="  ", subsequent_indent="  ")
    console.result(f"""
what to look at
{gone}
  The proof, line by line     highwater trace finding committed-data-lost {lake}
  The partition's story       highwater trace partition ledger-0 {lake}
  The page                    {run.out / PAGE}
  Your own logs               highwater audit LOGS""")
