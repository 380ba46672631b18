"""Lines that clients forge are not taken for records of the broker, and those around them are records all the same."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from highwater.pipelines.bronze import record_ends
from highwater.pipelines.bronze.layouts import patterns
from highwater.pipelines.bronze.layouts.patterns import pattern_layout
from highwater.pipelines.bronze.ranges import StartCutter
from highwater.pipelines.bronze.wrappers.recognise import layout_named
from highwater.pipelines.kafka.raw_record import BINARY, DOUBTFUL, RawRecord
from tests.examples import examples
from tests.reading import log_records
from tests.unit.bronze.test_wrapped import step_of
from tests.unit.bronze.wrapping import WRAPPINGS, wrapped
from tests.unit.forging import CARRIERS, FORGED, TIME, carriers, doubtful_values, logged, open_values

KAFKA = pattern_layout(patterns.KAFKA)
MIB = 1 << 20
LINE = TIME + "INFO Cluster ID = WCK8FkK8RbKFhwge5X0aNA (kafka.server.KafkaServer)\n"
TRACE = TIME + "ERROR Disk error (kafka.log.LogManager)\njava.io.IOException: x\n\tat a.b(C.java:1)\n"
VALUES = TIME + "INFO KafkaConfig values: \n\tbroker.id = 1\n\tlog.dirs = /d (a)\n (kafka.server.KafkaConfig)\n"
HALF = TIME + "INFO [Partition orders-0 broker=1] orders-0 starts at lea\n"
honest = st.lists(st.sampled_from([LINE, TRACE, VALUES, logged(CARRIERS[0], "g")]), max_size=8).map("".join)


def read(text: str, size: int = MIB) -> list[RawRecord]:
    content = text.encode()
    blocks = [content[start : start + size] for start in range(0, len(content), size)]
    found = list(log_records(blocks, KAFKA, MIB))
    assert sum(record.size_bytes for record in found) == len(content)
    assert all(one.byte_offset + one.size_bytes == other.byte_offset for one, other in pairwise(found))
    assert all(one.line_no + one.line_count == other.line_no for one, other in pairwise(found))
    return found


def taken(found: list[RawRecord]) -> list[str]:
    """First lines of records that facts are made of."""
    return [record.text.decode().partition("\n")[0] for record in found if record.problem is None]


def lines_of(text: str) -> list[str]:
    return taken(read(text))


@examples(300)
@given(carriers, open_values(), honest, honest)
def test_what_a_value_holds_is_text_of_its_record(carrier, value: str, before: str, after: str) -> None:
    line = logged(carrier, value)
    assert lines_of(before + line + after) == lines_of(before) + lines_of(line) + lines_of(after)
    assert len(read(line)) == 1
    assert read(line)[0].problem is None


@examples(300)
@given(carriers, doubtful_values(), honest, honest)
def test_what_cannot_be_told_from_records_is_doubtful(carrier, value: str, before: str, after: str) -> None:
    found = taken(read(before + logged(carrier, value) + after))
    assert not {line for line in found if line.removeprefix(TIME) in FORGED}


@examples(300)
@given(honest, honest)
def test_the_half_line_of_a_process_that_died_swallows_nothing(before: str, after: str) -> None:
    assert lines_of(before + HALF + LINE + after) == [*lines_of(before), HALF[:-1], *lines_of(LINE + after)]


#: Ends of the lines of stack traces, as Kafka, its libraries and plugins print them.
TRACE_ENDS = (
    "org.apache.kafka.common.errors.FencedLeaderEpochException: epoch 3 is < the last seen epoch 5 (TV-1)",
    "java.lang.IllegalStateException: no such host (kafka-1.example.com)",
    "Caused by: org.apache.kafka.common.config.ConfigException: invalid value (log.retention.ms)",
    "Caused by: java.lang.ClassCastException: (org.apache.kafka.common.errors.TimeoutException)",
    "org.apache.kafka.common.errors.InvalidRequestException: not supported (v2)",
    "com.example.Refused: see the documentation [com.example.Handler]",
    "java.lang.Exception: (java.lang.Throwable)",
)


@given(
    st.lists(st.sampled_from(TRACE_ENDS), min_size=1, max_size=3), st.sampled_from(["", "\n\tat a.b(C.java:1)"]), honest
)
def test_a_stack_trace_may_end_with_any_name_in_brackets(ends: list[str], frames: str, around: str) -> None:
    head = (
        f"{TIME}ERROR [GroupCoordinator 1]: Member m in group g has failed (kafka.coordinator.group.GroupCoordinator)"
    )
    text = "\n".join([head, *ends]) + frames + "\n"
    found = lines_of(around + text + around)
    assert found == [*lines_of(around), head, *lines_of(around)]


def test_a_rest_behind_lines_that_hold_no_value_is_a_stack_trace() -> None:
    head = f"{TIME}ERROR Shutdown broker because all log dirs in /d have failed (kafka.log.LogManager)"
    rest = f"{head}\njava.io.IOException: x (kafka.server.KafkaApis)\n"
    assert len(lines_of(LINE + rest + LINE)) == 3


def test_two_values_do_not_take_the_lines_between_them_for_text() -> None:
    honest_line = f"{TIME}INFO Deleted log for partition orders-0 in /d/orders-0. (kafka.log.LogManager)\n"
    opened = logged(CARRIERS[2], f"g\n{TIME}INFO z")
    closing = logged(CARRIERS[2], f"h (a.b)\n{TIME}INFO x (a.b)\ny")
    found = read(opened + honest_line + closing)
    assert [record.problem for record in found] == [DOUBTFUL] * len(found)
    assert len(found) > 3


@given(honest)
def test_nothing_of_an_honest_log_is_doubtful(text: str) -> None:
    assert {record.problem for record in read(text)} <= {None}


def test_a_file_without_loggers_stays_as_it_is() -> None:
    assert {record.problem for record in read(f"{TIME}INFO group x\n" * 50)} == {None}


def test_doubt_does_not_reach_far() -> None:
    far = LINE * (record_ends.FAR_BYTES // len(LINE) + 1)
    found = read(LINE + far + logged(CARRIERS[0], "g (a.b)\n" + TIME + FORGED[0] + "\nx") + LINE)
    assert [found[0].problem, found[-3].problem, found[-2].problem, found[-1].problem] == [
        None,
        DOUBTFUL,
        DOUBTFUL,
        None,
    ]


def test_a_value_of_64_kib() -> None:
    value = "x" * 30_000 + "\n" + f"{TIME}{FORGED[0]}\n" * 200
    assert lines_of(LINE + logged(CARRIERS[0], value) + LINE) == [
        LINE[:-1],
        logged(CARRIERS[0], value).partition("\n")[0],
        LINE[:-1],
    ]


odd = st.lists(
    st.one_of(
        st.sampled_from([LINE, TRACE, VALUES, HALF, "\n", "x (a.b)\n", "\0\n", "x\n", TIME + "INFO group x\n", "\r\n"]),
        st.builds(logged, carriers, st.one_of(open_values(), doubtful_values())),
        st.builds(lambda line: line.replace("\n", "\r\n"), st.sampled_from([LINE, TRACE])),
    ),
    max_size=14,
).map(lambda lines: "".join(lines).encode())


@examples(400)
@given(odd, st.integers(1, 900), st.sampled_from([1, 200, 700, 3000, MIB]), st.sampled_from([300, 1000, MIB]))
def test_how_blocks_are_cut_does_not_matter(content: bytes, size: int, far: int, limit: int) -> None:
    blocks = [content[start : start + size] for start in range(0, len(content), size)]
    with patch.object(record_ends, "FAR_BYTES", far):
        assert list(log_records(blocks, KAFKA, limit)) == list(log_records([content], KAFKA, limit))


@examples(400)
@given(odd, st.integers(1, 900), st.sampled_from([1, 200, 700, 3000]), st.integers(1, 1500))
@example(f"{TIME}INFO group g\n{LINE * 2}{TIME}INFO x (a.b)\ny (c.d)\n".encode(), 1, 700, 1)
def test_the_records_of_ranges_are_those_of_the_file(content: bytes, size: int, far: int, range_bytes: int) -> None:
    with patch.object(record_ends, "FAR_BYTES", far):
        cutter = StartCutter(KAFKA, range_bytes)
        blocks = [content[start : start + size] for start in range(0, len(content), size)]
        assert b"".join(cutter.tap(iter(blocks))) == content
        parts = cutter.ranges()
        found = [
            record
            for part in parts
            for record in log_records([content[part.start : part.end]], KAFKA, MIB, part.start, part.line_no)
        ]
        assert not parts or found == list(log_records([content], KAFKA, MIB))


@examples(200)
@given(odd, st.sampled_from(sorted(WRAPPINGS)))
def test_in_a_wrapper_the_same_holds(content: bytes, name: str) -> None:
    content = content.replace(b"\r", b"").replace(b"\0", b"")
    layout = layout_named(f"{step_of(name)} => {patterns.KAFKA}")
    plain = list(log_records([content], KAFKA, MIB))
    found = list(log_records([wrapped(content, name)] if content else [], layout, MIB))
    assert [(record.text, record.problem) for record in found] == [(record.text, record.problem) for record in plain]


@pytest.mark.parametrize("layout", ["[%d] %p [%t] %m (%c)", patterns.KAFKA, "%d %p %m (%c) [%t]"])
def test_all_layouts_with_the_logger_at_the_end_are_watched(layout: str) -> None:
    assert pattern_layout(layout).tail is not None


def test_long_attacks_take_time_in_proportion() -> None:
    def looked_at(text: str) -> Iterator[RawRecord]:
        return log_records([text.encode()], KAFKA, MIB)

    holder = logged(CARRIERS[0], "g (a.b)")
    rest = f"{TIME}INFO x (a.b)\ny (kafka.server.KafkaApis)\n"
    opened = f"{TIME}INFO group x\n{LINE}"
    for text in (holder + (holder + rest) * 20_000, opened * 20_000):
        assert {record.problem for record in looked_at(text)} == {DOUBTFUL}
    assert BINARY not in {record.problem for record in looked_at(opened)}
