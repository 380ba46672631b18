"""What folds of connections show, put together by broker."""

from __future__ import annotations

from typing import Any

from highwater.pipelines.base.instants import NEVER_US
from highwater.pipelines.cluster.premises import LogFile, Premises
from highwater.pipelines.kafka.seals import Seal
from highwater.pipelines.replay import connections as c
from highwater.pipelines.replay.isr_evidence import Gap, IsrEvidence
from highwater.pipelines.replay.log_evidence import evidences_of

ONE, OTHER = ("c", 1), ("c", 2)
SLACK_US = c.LOGGED_SLACK_US


def row(broker: tuple[str, int] = ONE, **values: Any) -> dict[str, Any]:
    return {"cluster_id": broker[0], "broker_id": broker[1], "connection": "x"} | values


TABLES = {
    c.GAPS: [
        row(since_us=500, handled_us=501, until_us=NEVER_US, complete=True),
        row(since_us=100, handled_us=101, until_us=300, complete=False),
        row(OTHER, since_us=7, handled_us=8, until_us=NEVER_US, complete=True),
    ],
    c.CHAIN_ENDS: [row(chain="x#1", arrival_us=100), row(chain="x#4", arrival_us=500)],
    c.RESUMED: [row(since_us=100)],
    c.LOGGED: [row(since_us=50, until_us=510)],
    c.SILENCES: [row(since_us=300, until_us=400), row(since_us=None, until_us=450), row(since_us=100, until_us=200)],
}


def test_each_broker_has_what_its_log_shows():
    file = LogFile("f", "p", "server", "c", 3, 1, 2, True)
    evidences = evidences_of(lambda table: TABLES[table], Premises(files=(file,)), {}, {})
    assert evidences == {
        ONE: IsrEvidence(
            fetches_logged=((50 - SLACK_US, 510 + SLACK_US),),
            silences=((100, 200), (300, 400)),
            gaps={"x": (Gap(100, 101, 300, False), Gap(500, 501, NEVER_US))},
            chain_ends={"x#1": 100, "x#4": 500},
            last_line_us=450,
        ),
        # A file is known of this one, and no request. Of the other broker there is no file: its gaps alone say nothing.
        ("c", 3): IsrEvidence(fetches_logged=()),
    }


def test_what_an_earlier_run_knew_is_gone_on_from():
    before = IsrEvidence(
        fetches_logged=((0, 90),),
        silences=((20, 40), (460, 480)),
        gaps={"x": (Gap(30, 31, 100), Gap(100, 101, 250)), "gone": (Gap(60, 61, NEVER_US),)},
        last_line_us=80,
    )
    silent = {**TABLES, c.SILENCES: []}
    evidences = evidences_of(lambda table: silent[table], Premises(), {ONE: before}, {ONE: Seal(450, 450, 450, "")})
    evidence = evidences[ONE]
    assert evidence.fetches_logged == ((50 - SLACK_US, 510 + SLACK_US),)
    assert evidence.silences == ((20, 40),)
    # From the last fetch before the seal on, the log is read again.
    assert evidence.gaps == {
        "x": (Gap(30, 31, 100), Gap(100, 101, 300, False), Gap(500, 501, NEVER_US)),
        "gone": (Gap(60, 61, NEVER_US),),
    }
    assert evidence.last_line_us == 80
