"""What verbs print fits a terminal of 80 columns; only what has no blank to be broken at is wider."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from highwater.jobs.alerts import Alert
from highwater.jobs.freshness import Newest, describe_freshness
from highwater.jobs.gate import describe_gate
from highwater.jobs.watch import show_alert
from highwater.pipelines.base.console import RichConsole
from tests.bench.sessions import session
from tests.unit.report import sample

LAKE = Path(__file__).parents[2] / "data" / "lake"
OF_UNCLEAN = "--cluster ASBFCKqYSOSQqJfr97Jyhg"


def wide(printed: str) -> list[str]:
    """Lines that could be broken, but for commands."""
    lines = printed.splitlines()
    return [text for text in lines if len(text) > 80 and " " in text[:80].strip() and "highwater " not in text]


@pytest.mark.parametrize(
    "verb",
    [
        "explain",
        "explain committed-data-lost",
        f"compare ..2026-11-20T15:54:45.000 2026-11-20T15:54:45.000.. {OF_UNCLEAN} --lake {LAKE}",
        f"trace request --broker 1 --correlation-id 104 {OF_UNCLEAN} --lake {LAKE}",
        f"survivors sessions-1 --lake {LAKE}",
    ],
)
def test_what_a_verb_prints(verb: str, tmp_path: Path) -> None:
    printed, _ = session(f"highwater {verb}", tmp_path)
    assert len(printed.splitlines()) > 1
    assert wide(printed) == []


class Screen(io.StringIO):
    """A terminal, of 80 columns where it is a dumb one."""

    def isatty(self) -> bool:
        return True


def test_what_gate_and_watch_print(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    report = sample.audited()
    newest = [Newest("c", broker, 1_790_000_000_000_000) for broker in range(4)]
    told = [*describe_gate(report, "inconclusive"), describe_freshness(newest)]
    told += [show_alert(Alert(incident, False)) for incident in report.incidents]
    out = Screen()
    for text in told:
        RichConsole(out, io.StringIO()).prose(text)
    assert max(map(len, told)) > 80
    assert wide(out.getvalue()) == []
    assert re.sub(r"\s+", " ", out.getvalue()).strip() == re.sub(r"\s+", " ", " ".join(told)).strip()
