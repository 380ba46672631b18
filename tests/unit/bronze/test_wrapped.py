"""Wrapped logs: real lines, in every wrapper and any pieces, give the records that they give unwrapped."""

from __future__ import annotations

import gzip
import json
import re
from datetime import UTC
from functools import cache
from pathlib import Path
from time import process_time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from highwater.pipelines.bronze.layout import Layout, RecordHead
from highwater.pipelines.bronze.layouts.patterns import KAFKA, pattern_layout
from highwater.pipelines.bronze.reader import STREAMS_MAX
from highwater.pipelines.bronze.wrappers.recognise import layout_named
from highwater.pipelines.bronze.wrappers.recognise import recognise as recognised
from highwater.pipelines.bronze.wrappers.remarks import looked_into
from highwater.pipelines.bronze.wrappers.rows import _closed
from highwater.pipelines.kafka.raw_record import CONTINUATION as CONTINUED
from highwater.pipelines.kafka.raw_record import FOREIGN, RawRecord
from tests.examples import examples
from tests.reading import log_records
from tests.renderings import by_pattern, logs_of, records_of
from tests.unit.bronze.wrapping import IN_PIECES, WRAPPINGS, wrapped

ROOT = Path(__file__).parents[3]
SLICE = ROOT / "tests" / "data" / "slice"
CORPORA = ROOT.parent / "shared" / "corpora"
MIB = 1 << 20
LINE = b"[2026-11-20 15:39:28,132] INFO Cluster ID = WCK8FkK8RbKFhwge5X0aNA (kafka.server.KafkaServer)\n"
TRACE = b"java.io.IOException: x\n\tat a.b(C.java:1)\n\n\tat a.b(D.java:1)\n"

names = st.sampled_from(sorted(WRAPPINGS))


@cache
def logs() -> list[list[bytes]]:
    """Lines of real logs, of the slice and of text request logs and stack traces of old releases."""
    files = sorted(SLICE.glob("broker-1/logs/*.gz"))
    files += [
        CORPORA / name
        for name in ("zk11-faults/broker-1/logs/server.log.gz", "zk25-rolls/broker-1/logs/kafka-request.log.gz")
    ]
    found = []
    for file in files:
        if file.is_file():
            with gzip.open(file) as opened:
                found.append(opened.read(8 * MIB).split(b"\n")[:-1])
    return found


@st.composite
def windows(draw: st.DrawFn) -> bytes:
    """Consecutive lines of a real log that begin with a record."""
    lines = draw(st.sampled_from(logs()))
    start = draw(st.integers(0, len(lines) - 1))
    while start and not lines[start].startswith(b"[20"):
        start -= 1
    return b"\n".join(lines[start : start + draw(st.integers(1, 60))]) + b"\n"


def plain(content: bytes) -> list[tuple[RecordHead | None, bytes, str | None]]:
    return read(list(log_records([content], layout_named(KAFKA), MIB)), KAFKA)


def read(found: list[RawRecord], layout: str) -> list[tuple[RecordHead | None, bytes, str | None]]:
    parse = layout_named(layout).parser(UTC)
    return [(parse(record.text), record.text, record.problem) for record in found]


def recognise(lines: list[bytes]) -> Layout | None:
    return recognised(lines).layout


#: Steps that each wrapping of `WRAPPINGS` is taken off by.
STEPS = {
    "cri": "frame %d %X{stream} %X{part} %m",
    "docker": 'json {"text":"log","stream":"stream","is_ended":true}',
    "json-log": 'json {"text":"log","stream":"stream","part":"logtag"}',
    "json-message": 'json {"text":"message"}',
    "journal-json": 'json {"text":"MESSAGE","stream":"_STREAM_ID","part":"_LINE_BREAK"}',
    "kubectl-prefix-timestamps": "frame [%X] %d %m",
    "kubectl-prefix": "frame [%X] %m",
    "timestamps": "frame %d %m",
    "compose": "frame %X | %m",
    "compose-timestamps": "frame %X | %d %m",
    "syslog-5424": "frame <%X>%X %d %X %X %X - [%X] %m",
    "syslog-5424-bare": "frame <%X>%X %d %X %X - - - %m",
    "syslog-3164": "frame <%X>%d %X %X: %m",
    "rsyslog-file": "frame %d %X %X: %m",
    "journal-short": "frame %d %X %X: %m",
    "journal-no-hostname": "frame %d %X: %m",
    "journal-short-iso": "frame %d %X %X: %m",
    "journal-short-full": "frame %X %d %X %X: %m",
    "journal-short-unix": "frame %d %X %X: %m",
    "journal-short-monotonic": "frame [%X] %X %X: %m",
}


def step_of(name: str) -> str:
    """Return the step by which a wrapping can be taken off."""
    return STEPS[name]


def cut(content: bytes, size: int) -> list[bytes]:
    return [content[start : start + size] for start in range(0, len(content), size)]


@examples(300)
@given(windows(), names, st.data())
def test_a_wrapped_log_gives_the_records_of_the_log(content: bytes, name: str, data: st.DataObject) -> None:
    def cuts(line: bytes) -> list[bytes]:
        # Where a piece is a text, no character is cut in two.
        is_cut = line.isascii() and line not in whole
        places = sorted(data.draw(st.lists(st.integers(0, len(line)), max_size=3))) if is_cut else []
        return [line[start:end] for start, end in zip([0, *places], [*places, len(line)], strict=True)]

    # Of a few lines, none of which ends its record, no layout is known.
    bare = recognise(content.split(b"\n")[:-1])
    assume(bare is not None and bare.name == KAFKA)
    # A frame is learned: the line of one record is whole, others may be in parts.
    whole = [line for line in content.split(b"\n") if line.startswith(b"[20")][:1]
    assume(len(whole) == 1)
    before = plain(content)
    file = wrapped(content, name, cuts if name in IN_PIECES else lambda line: [line])
    layout = recognise(file.split(b"\n")[:-1])
    assert layout is not None
    assert layout.name.endswith(KAFKA)
    found = list(log_records(cut(file, data.draw(st.integers(1, 5000))), layout, MIB))
    assert read(found, layout.name) == before
    # Places are those of the file: the records lie one behind the other, and each begins with its first line.
    offset, line_no = 0, 1
    for record in found:
        assert (record.byte_offset, record.line_no) == (offset, line_no)
        offset += record.size_bytes
        line_no += record.line_count
        assert file[:offset].endswith(b"\n")
    assert (offset, line_no) == (len(file), file.count(b"\n") + 1)


@pytest.mark.parametrize("place", [0, 1, 700])
def test_pieces_of_few_lines_count_no_more_than_whole_ones(place: int) -> None:
    lines = logs()[0][5:7]
    file = wrapped(
        b"\n".join(lines) + b"\n", "docker", lambda line: [line] if line == lines[0] else [line[:place], line[place:]]
    )
    assert recognise(file.split(b"\n")[:-1]).name == f"{STEPS['docker']} => {KAFKA}"


@examples(100)
@given(windows(), windows(), st.sampled_from(["cri", "docker", "journal-json"]), st.randoms(use_true_random=False))
def test_streams_may_be_interleaved(one: bytes, other: bytes, name: str, random) -> None:
    mark = {
        "cri": (b" stdout ", b" stderr "),
        "docker": (b'"stdout"', b'"stderr"'),
        "journal-json": (b'"7a1"', b'"8b2"'),
    }
    halves = lambda line: [line[: len(line) // 2], line[len(line) // 2 :]] if line.isascii() else [line]  # noqa: E731
    queues = [wrapped(one, name, halves).splitlines(True), wrapped(other, name, halves).splitlines(True)]
    queues[1] = [line.replace(*mark[name], 1) for line in queues[1]]
    file = []
    while any(queues):
        file.append(random.choice([queue for queue in queues if queue]).pop(0))
    layout = layout_named(f"{STEPS[name]} => {KAFKA}")
    found = list(log_records([b"".join(file)], layout, MIB))
    key = repr
    assert sorted(read(found, layout.name), key=key) == sorted(plain(one) + plain(other), key=key)
    assert sum(record.size_bytes for record in found) == sum(map(len, file))
    assert sum(record.line_count for record in found) == len(file)
    content = b"".join(file)
    starts = {0} | {place + 1 for place, byte in enumerate(content) if byte == 10}
    assert {record.byte_offset for record in found} <= starts


contents = st.lists(
    st.one_of(
        st.sampled_from([LINE, TRACE, b"\n", LINE[:-1] + b"\r\n", b"\tat x\r\n", b"\0\n"]),
        st.integers(0, len(LINE)).map(lambda size: LINE[:size] + b"\n"),
        st.integers(1, 400).map(lambda size: b"x" * size + b"\n"),
    ),
    min_size=1,
    max_size=12,
).map(b"".join)


@examples(300)
@given(contents, names, st.sampled_from([256, 300, 400, MIB]), st.integers(1, 700))
def test_damage_is_marked_as_in_a_plain_file(content: bytes, name: str, limit: int, block: int) -> None:
    before = [(record.text, record.problem) for record in log_records([content], pattern_layout(KAFKA), limit)]
    file = wrapped(content, name)
    found = log_records(cut(file, block), layout_named(f"{step_of(name)} => {KAFKA}"), limit)
    assert [(record.text, record.problem) for record in found] == before


@pytest.mark.parametrize("name", WRAPPINGS)
def test_each_wrapping_is_taken_off(name: str) -> None:
    found = log_records([wrapped(LINE * 3 + TRACE, name)], layout_named(f"{step_of(name)} => {KAFKA}"), MIB)
    assert [record.text for record in found] == [LINE[:-1], LINE[:-1], (LINE + TRACE)[:-1]]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_signs_of_a_page_are_read_as_the_signs_that_they_are(number: int) -> None:
    quoted = LINE.replace(b"Cluster ID", b"Cluster&#x27;s ID")
    found = recognise((LINE * 9 + quoted * number).split(b"\n")[:-1])
    assert found is not None
    assert found.name == f"entities => {KAFKA}"
    bare = recognise((LINE * 9 + quoted + LINE.replace(b"Cluster ID", b"Cluster's ID") * 3).split(b"\n")[:-1])
    assert bare is not None
    assert bare.name == KAFKA


_MESSAGE = "[KafkaServer id=1] started"
_ZONED = "yyyy-MM-dd'T'HH:mm:ss.SSS" + "X" * 3
_LAYOUTS = {
    "%d [%t] %p %c - %m": f"2026-11-20 15:33:21,101 [main] INFO kafka.server.KafkaServer - {_MESSAGE}",
    f"%d{{{_ZONED}}} %p %c: %m": f"2026-11-20T15:33:21.101Z INFO kafka.server.KafkaServer: {_MESSAGE}",
    "%d{yyyy-MM-dd HH:mm:ss} %p %m (%c) [%t]": f"2026-11-20 15:33:21 INFO {_MESSAGE} (kafka.server.KafkaServer) [main]",
    f'{{"@timestamp":"%d{{{_ZONED}}}","level":"%p","logger_name":"%c","message":"%m"}}': json.dumps(
        {"@timestamp": "2026-11-20T15:33:21.101Z", "level": "INFO", "logger_name": "kafka.server.KafkaServer"}
        | {"message": _MESSAGE}
    ),
}


@pytest.mark.parametrize("layout", _LAYOUTS)
@pytest.mark.parametrize("name", sorted(WRAPPINGS))
def test_any_layout_may_stand_in_any_wrapper(layout: str, name: str) -> None:
    file = wrapped(_LAYOUTS[layout].encode() + b"\n", name) * 3
    found = recognise(file.split(b"\n")[:-1])
    assert found is not None
    heads = [head for head, _, _ in read(list(log_records([file], found, MIB)), found.name)]
    assert {(head.logger, head.message) for head in heads if head} == {("kafka.server.KafkaServer", _MESSAGE.encode())}
    assert len(heads) == 3


def test_a_plain_log_is_not_taken_for_a_wrapped_one() -> None:
    for lines in logs():
        layout = recognise(lines[:500])
        assert layout is not None
        assert layout.name == KAFKA


@pytest.mark.parametrize("pattern", ["[%t] %d %p %m (%c)", "%t %d %p %m (%c)", "[%t] [%d] %p %c: %m"])
def test_threads_before_times_are_no_sources(pattern: str) -> None:
    write = by_pattern(pattern)
    content = max((content for path, content in logs_of(SLICE) if path.name.startswith("server.log")), key=len)
    lines = [line for record in records_of(content)[:300] for line in write(record).encode().split(b"\n")]
    layout = recognise(lines)
    assert layout is not None
    assert "{source}" not in layout.name


_PREAMBLES = {
    "confluent": "===> User\nuid=1000(appuser) gid=1000(appuser)\nCLUSTER_ID not set. Setting it to default value\n",
    "bitnami": "\nkafka 10:00:00.00 INFO  ==> Welcome to the Bitnami kafka container\n",
    "strimzi": "STRIMZI_BROKER_ID=0\nCertificate was added to keystore\nlisteners=PLAIN-9092://0.0.0.0:9092\n",
    "jvm": "OpenJDK 64-Bit Server VM warning: Option UseConcMarkSweepGC was deprecated\n",
}


@pytest.mark.parametrize("name", _PREAMBLES)
def test_a_log_behind_lines_of_a_start_script_takes_the_plain_reader(name: str) -> None:
    file = _PREAMBLES[name].encode() + LINE * 3
    layout = recognise(file.split(b"\n")[:-1])
    assert layout is not None
    assert layout.name == KAFKA
    found = list(log_records([file], layout, MIB))
    assert [looked_into(record.problem, record.text) is None for record in found] == [False, True, True, True]
    assert str(looked_into(found[0].problem, found[0].text)).startswith(FOREIGN)


def test_a_record_of_kafka_before_the_log_is_not_of_a_start_script() -> None:
    damaged = b"[2026-11-20 15:39:2 INFO Cluster ID = x (kafka.server.KafkaServer)"
    assert looked_into(CONTINUED, b"===> User\n" + damaged) == CONTINUED


def test_lines_of_a_tool_between_those_of_the_log_are_records_of_their_own() -> None:
    file = b"-- Boot 7d --\n" + wrapped((LINE + TRACE) * 5, "journal-short") + b"-- No entries --\n"
    layout = recognise(file.split(b"\n")[:-1])
    assert layout is not None
    found = list(log_records([file], layout, MIB))
    assert sorted((record.byte_offset, record.problem) for record in found if record.problem) == [
        (0, "layout"),
        (len(file) - 17, "layout"),
    ]
    assert [record.text for record in found if not record.problem] == [(LINE + TRACE)[:-1]] * 5


def test_lines_of_other_processes_are_not_mixed_in() -> None:
    other = b"Nov 20 15:33:21 host sshd[%d]: Accepted publickey\n"
    lines = wrapped(LINE + TRACE, "journal-short").splitlines(True)
    file = b"".join(other % number + line for number, line in enumerate(lines * (STREAMS_MAX * 2)))
    layout = recognise(file.split(b"\n")[:500])
    assert layout is not None
    found = list(log_records([file], layout, MIB))
    assert {record.text for record in found if record.problem is None} == {(LINE + TRACE)[:-1]}
    assert sum(record.problem is None for record in found) == STREAMS_MAX * 2
    assert sum(record.size_bytes for record in found) == len(file)


@pytest.mark.parametrize("name", ["docker", "cri"])
def test_a_line_of_50_mb_is_cut_but_counted(name: str) -> None:
    long = wrapped(b"x" * 50_000_000 + b"\n", name, lambda line: cut(line, 16_384))
    one = wrapped(LINE, name)
    found = list(log_records(cut(one + long + one, MIB), layout_named(f"{STEPS[name]} => {KAFKA}"), MIB))
    assert [record.problem for record in found] == ["oversized", "oversized", None]
    assert [len(record.text) for record in found] == [len(LINE) - 1, MIB, len(LINE) - 1]
    assert found[2].byte_offset == len(one + long)


def test_a_line_that_was_cut_while_it_was_written() -> None:
    for name, size in (("cri", 20), ("docker", 20), ("cri", 120)):
        file = wrapped(LINE * 2, name)
        layout = layout_named(f"{STEPS[name]} => {KAFKA}")
        found = sorted(log_records([file[: len(file) // 2 + size]], layout, MIB))
        assert [record.problem for record in found] == [None, "half_line"]
    pieces = wrapped(LINE, "cri", lambda line: [line[:30], line[30:]]).splitlines(True)
    (half,) = log_records([pieces[0]], layout_named(f"{STEPS['cri']} => {KAFKA}"), MIB)
    assert (half.problem, half.text) == ("half_line", LINE[:30])


@given(st.text('[]{},"\\a ', max_size=40))
@examples(200)
def test_a_document_is_ended_behind_its_last_whole_value(text: str) -> None:
    content = text.encode()
    assert _closed(content) == _closed_slowly(content)


def test_deep_documents_are_closed_in_linear_time() -> None:
    started = process_time()
    deep = b"[" * 50_000 + b"]" * 49_999
    assert _closed(deep) == deep + b"]"
    assert process_time() - started < 2


def _closed_slowly(content: bytes) -> bytes:
    """Return the text behind which every value is whole, with the signs that its beginning leaves open."""
    opened, end, closers = b"", 0, b""
    for match in re.finditer(rb'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[][{},]', content):
        sign = match[0]
        if sign in b"[{":
            opened += sign
        elif sign == b",":
            end, closers = match.start(), opened
        elif sign in b"]}" and opened:
            opened = opened[:-1]
            end, closers = match.end(), opened
    return content[:end] + closers[::-1].translate(bytes.maketrans(b"[{", b"]}"))
