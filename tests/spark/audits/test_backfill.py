"""An audit of more than a batch is made as several, and gives what one gives; one that was cut off goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs import steps
from pipelines.lake import Lake
from schemas.bronze import LOG_FILES
from schemas.gold import RUNS
from tests.cuts import cut_every, deliver
from tests.spark.audits.conftest import Verb
from tests.spark.audits.test_incremental import gold_content
from tests.verbs import SLICE


def test_batches_give_what_one_run_gives(
    verb: Verb, slice_lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, conf = tmp_path / "logs", tmp_path / "conf.toml"
    for piece in cut_every(SLICE, tmp_path / "pieces", 12):
        deliver(piece, logs)
    # A lag by which most of the slice's half minute is sealed.
    conf.write_text("[ingest]\nbatch_mb = 10\n[replay]\nseal_lag_ms = 10000\n")
    replay, lakes = steps._replay, []

    def cut_off(run: steps.Run, lake: Lake) -> str:
        lakes.append(lake)
        if len(lakes) == 2:
            raise RuntimeError("cut off")
        return replay(run, lake)

    monkeypatch.setattr(steps, "_replay", cut_off)
    assert verb(tmp_path, "audit", logs, "--conf", conf).code == 70
    assert batches_of(lakes[0]) == 2
    ended = verb(tmp_path, "audit", logs, "--conf", conf)
    assert ended.code == 0, ended.err
    assert batches_of(lakes[0]) > 2
    assert len(lakes) == batches_of(lakes[0]) + 1, "the batch that was cut off is finished before the next is read"
    assert gold_content(lakes[0]) == gold_content(slice_lake)
    assert lakes[0].read(RUNS).count() == batches_of(lakes[0])


def batches_of(lake: Lake) -> int:
    return lake.read(LOG_FILES).select("run_id").distinct().count()
