"""Figures of comparisons, and what the pure parts say where rows lack something."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.inquiry.answer import Answer, Lines, Table
from highwater.pipelines.inquiry.compare import Side
from highwater.pipelines.inquiry.compare import answer as compared
from highwater.pipelines.inquiry.quantiles import QUANTILES, build_quantile_sql, name_quantiles
from highwater.pipelines.inquiry.render import format_cells, format_json, format_text
from highwater.pipelines.inquiry.replica_logs import FETCHED, FOLLOWS, LEADS, WATERMARK, KnownReplicaLog, LogMark
from highwater.pipelines.inquiry.survivors import (
    ALL,
    Acked,
    PartitionFacts,
    answer,
    find_survivors,
    loss,
    merge_intervals,
)
from highwater.pipelines.report.cluster.parts import Step
from highwater.pipelines.report.figures import PHASES
from tests.unit.report.hostile import TEXTS

ROW = {"file_id": None, "time": 0}


# ---------------------------------------------------------------------- quantiles


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=60))
def test_a_quantile_is_that_of_the_values_to_a_hundredth_of_a_millisecond(values: list[float]) -> None:
    rows = ", ".join(f"({value!r}::DOUBLE)" for value in values)
    ((ticks,),) = duckdb.sql(f"SELECT {build_quantile_sql('ms')} FROM (VALUES {rows}) AS durations(ms)").fetchall()
    ordered = sorted(values)
    for name, share in QUANTILES.items():
        place = (len(ordered) - 1) * share
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        expected = ordered[low] + (ordered[high] - ordered[low]) * (place - low)
        assert name_quantiles(ticks)[name] == pytest.approx(expected, abs=0.0051)


def test_of_nothing_there_is_no_quantile() -> None:
    assert name_quantiles(None) == dict.fromkeys(QUANTILES)


# ---------------------------------------------------------------------- survivors


def facts(marks: list[LogMark], acked: list[Acked], **more: Any) -> PartitionFacts:
    given = {
        "cluster_id": "c",
        "topic": "t",
        "partition": 0,
        "before_us": None,
        "tenures": (),
        "marks": tuple(marks),
        "acked": tuple(acked),
        "is_whole": True,
        "has_answers": bool(acked),
        "unplaced": 0,
        "replicas": (1, 2),
        "isr": (1,),
        "eligible": (),
        "leader": -1,
        "committed": None,
    }
    return PartitionFacts(**(given | more))


def batch(start: int, end: int, **more: Any) -> Acked:
    return Acked(0, start, end, ALL, True, True, ROW)._replace(**more)


def test_a_batch_whose_end_no_line_tells_may_hold_more() -> None:
    known = KnownReplicaLog(2, ((0, 0),), 5, 5)
    assert loss(known, [batch(4, 9)]).surely == ((5, 9),)
    assert loss(known, [batch(4, 9)]).beyond is None
    assert loss(known, [batch(7, 8, is_whole=False)]).beyond == 8
    assert loss(known, [batch(7, 8, is_sure=False)]) == ((), ((7, 8),), None)


def test_at_default_levels_high_watermarks_tell_what_is_lost() -> None:
    watermark = LogMark(0, 3, WATERMARK, 1, 50, ROW)
    marks = [LogMark(0, 1, LEADS, 1, 0, ROW), LogMark(0, 2, FOLLOWS, 2, 20, ROW), watermark]
    told = answer(find_survivors(facts(marks, [], committed=watermark)), Lines()).sentences
    assert any("What was acknowledged cannot be shown" in sentence for sentence in told)
    assert any("what a high watermark had passed is lost: offsets 20-49" in sentence for sentence in told)


def test_a_replica_of_which_nothing_is_told_cannot_be_shown() -> None:
    told = answer(find_survivors(facts([LogMark(0, 1, LEADS, 1, 0, ROW)], [batch(0, 1)])), Lines())
    assert "If broker 2 is elected: cannot be shown: the logs do not show how far its log goes." in told.sentences


def test_a_broker_that_the_partition_was_moved_away_from_is_no_candidate() -> None:
    marks = [LogMark(0, 1, LEADS, 1, 0, ROW), LogMark(0, 2, FOLLOWS, 3, 20, ROW)]
    ids = [candidate.log.replica_id for candidate in find_survivors(facts(marks, [])).candidates]
    assert ids == [1, 2]
    untold = find_survivors(facts(marks, [], replicas=(), isr=()))
    assert [candidate.log.replica_id for candidate in untold.candidates] == [1, 3]


def test_where_a_release_logs_no_answers_the_leader_s_high_watermark_decides() -> None:
    marks = [
        LogMark(0, 1, LEADS, 1, 0, ROW),
        LogMark(0, 2, FETCHED, 2, 5, ROW, leader=1, offset_max=5),
        LogMark(0, 3, WATERMARK, 1, 8, ROW),
    ]
    unsure = [batch(7, 8, is_sure=False), batch(8, 9, is_sure=False)]
    (_, second) = find_survivors(facts(marks, unsure)).candidates
    assert (second.of_all.surely, second.of_all.perhaps) == (((7, 8),), ((8, 9),))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5)), max_size=12))
def test_merged_intervals_hold_the_same_offsets(pairs: list[tuple[int, int]]) -> None:
    intervals = [(start, start + size) for start, size in pairs]
    joined = merge_intervals(intervals)
    assert {n for one in joined for n in range(*one)} == {n for one in intervals for n in range(*one)}
    assert all(first[1] < second[0] for first, second in pairwise(joined))


# ------------------------------------------------------------------------ compare


def side(name: str, p99: float, waits: dict[int, tuple[int, float]], happened: dict[int, dict[str, int]]) -> Side:
    return Side(
        name=name,
        seconds=60.0,
        verdicts={"committed-data-lost": "violated" if happened else "clean"},
        findings={},
        latency={("PRODUCE", -1): {"requests": 102, "p50": 1.0, "p99": p99, "p999": p99, **dict.fromkeys(PHASES, 0.1)}},
        waits=waits,
        events={"broker 2 started": 1} if happened else {},
        of_broker=happened,
    )


def test_a_change_is_explained_by_the_replica_that_was_waited_for() -> None:
    quiet = side("yesterday", 5.0, {2: (50, 0.1), 3: (50, 0.1)}, {})
    slow = side("today", 80.0, {2: (80, 9.0), 3: (20, 0.1)}, {2: {"started": 1}})
    told = compared(quiet, slow, 20).sentences
    assert told[0] == "committed-data-lost: clean in A, violated in B."
    assert any("for broker 2" in sentence for sentence in told)
    assert "New or more frequent in B: broker 2 started." in told
    unexplained = compared(quiet, side("today", 80.0, {2: (80, 9.0)}, {}), 20).sentences
    assert any("only the waiting" in sentence for sentence in unexplained)
    assert "No p99 changed by 20% or more." in compared(quiet, quiet, 20).sentences


# ------------------------------------------------------------------------- output


@pytest.mark.parametrize("text", TEXTS)
def test_what_logs_hold_cannot_reach_the_terminal(text: str) -> None:
    step = Step(time="2026-11-20T15:54:37.000Z", what=text, file=text, line_no=1, byte_offset=0, text=text)
    told = Answer(title=text, sentences=(text,), steps=(step,), tables=(Table(title="t", rows=({"a": text},)),))
    printed = format_text(told) + str(format_cells(told.tables[0]))
    assert all(char.isprintable() or char == "\n" for char in printed)
    assert format_json(told)
