"""The quality step as a user meets it: a run that stops, one that goes on without the file, a release."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import SLICE, highwater

pytestmark = pytest.mark.e2e
NOBODY = "[2026-11-20 15:33:21,101] INFO Nobody says this, {n} times (kafka.server.Nobody)\n"
STRICT = '[quality.severity]\n"ledger.kinds.parsed_share+parsed_share_min:not_below" = "critical"\n'


def gold(lake: Path) -> set[str]:
    return {path.parts[-3] for path in lake.glob("gold/*/_delta_log/*.json") if path.name != f"{0:020}.json"}


def test_a_file_that_fails_stops_the_run_and_later_ones_go_on_without_it(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "controller.log").write_text("".join(NOBODY.format(n=n) for n in range(20)), encoding="utf-8")
    (logs / "state-change.log.gz").write_bytes((SLICE / "broker-1/logs/state-change.log.gz").read_bytes())
    conf = tmp_path / "strict.toml"
    conf.write_text(STRICT, encoding="utf-8")

    stopped = highwater(tmp_path, "audit", logs, "--conf", conf)
    assert stopped.code == 2
    (complaint,) = stopped.complaints
    for word in ("ledger.kinds", "parsed_share", "controller.log", "highwater quality --release"):
        assert word in complaint
    assert gold(tmp_path / "lake") == set()

    without = highwater(tmp_path, "audit", logs, "--conf", conf)
    assert without.code == 3, without.err
    assert any("controller.log: is in quarantine" in problem for problem in without.report["problems"])

    released = highwater(tmp_path, "quality", "--release", "all", "--conf", conf)
    assert released.code == 0
    assert "controller.log" in released.out
    again = highwater(tmp_path, "quality", "--release", "all", "--conf", conf)
    assert (again.code, again.out) == (0, "")
