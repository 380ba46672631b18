"""Layouts: probing, and taking records apart. Lines are real ones, in several layouts."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.bronze.layout import BY_NAME, EPOCH, LAYOUTS, MICROSECOND, Clock, Names, probe, split_tail

SHRINK = (
    b"[2026-11-20 15:29:54,629] INFO [Partition orders-4 broker=1] Shrinking ISR from 1,2 to 1. Leader: (highWatermark:"
    b" 47, endOffset: 48). Out of sync replicas: (brokerId: 2, endOffset: 47). (kafka.cluster.Partition)"
)
FETCH_ERROR = (
    b"[2026-11-20 15:42:07,809] WARN [ReplicaFetcherThread-0-3], Error in fetch kafka.server.ReplicaFetcherThread"
    b"$FetchRequest@8eb85ff (kafka.server.ReplicaFetcherThread)\n"
    b"java.io.IOException: Connection to 3 was disconnected before the response was read\n"
    b"\tat kafka.utils.NetworkClientBlockingOps$.$anonfun$blockingSendAndReceive$3(NetworkClientBlockingOps.scala:114)"
)
NO_FRAMES = (
    b"[2026-11-20 15:57:51,232] ERROR [ReplicaManager broker=1] Error processing append operation on partition t-0"
    b" (kafka.server.ReplicaManager)\n"
    b"org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(1) is insufficient"
    b" to satisfy the min.isr requirement of 2 for partition t-0"
)
CONFIG = (
    b"[2026-11-20 15:33:24,894] INFO KafkaConfig values: \n\tadvertised.listeners = PLAINTEXT://127.0.0.1:19094\n"
    b"\tzookeeper.ssl.truststore.type = null\n (kafka.server.KafkaConfig)"
)
AT = int(datetime(2026, 11, 20, 15, 29, 54, 629000, UTC).timestamp() * 1e6)


def parse(name: str, text: bytes, zone: str = "UTC"):
    return BY_NAME[name].parser(ZoneInfo(zone))(text)


def test_default_layout_one_line() -> None:
    head = parse("kafka", SHRINK)
    assert head.time_us == AT
    assert (head.level, head.logger) == ("INFO", "kafka.cluster.Partition")
    assert head.message.startswith(b"[Partition orders-4 broker=1] Shrinking")
    assert head.message.endswith(b"endOffset: 47).")


def test_logger_stands_before_a_stack_trace() -> None:
    head = parse("kafka", FETCH_ERROR)
    assert head.logger == "kafka.server.ReplicaFetcherThread"
    assert b"FetchRequest@8eb85ff\njava.io.IOException: Connection to 3" in head.message


def test_logger_stands_before_an_exception_without_frames() -> None:
    head = parse("kafka", NO_FRAMES)
    assert head.logger == "kafka.server.ReplicaManager"
    assert head.message.endswith(b"for partition t-0")
    assert b"partition t-0\norg.apache.kafka.common.errors" in head.message


def test_logger_stands_on_the_last_line_of_a_configuration_dump() -> None:
    head = parse("kafka", CONFIG)
    assert head.logger == "kafka.server.KafkaConfig"
    assert head.message.endswith(b"\tzookeeper.ssl.truststore.type = null\n")


def test_a_value_that_looks_like_a_logger_does_not_end_the_message() -> None:
    text = b"KafkaConfig values: \n\tengine = a.Engine (a.Engine)\n\tz = 1\n (kafka.server.KafkaConfig)"
    assert split_tail(text, Names())[0] == "kafka.server.KafkaConfig"


def test_a_padded_level_is_no_part_of_the_message() -> None:
    assert parse("kafka", SHRINK.replace(b"INFO ", b"INFO  ")).message == parse("kafka", SHRINK).message


def test_a_cut_record_has_no_logger() -> None:
    head = parse("kafka", SHRINK[:80])
    assert head.logger is None
    assert head.message == SHRINK[31:80]


@pytest.mark.parametrize(
    ("name", "text", "level", "logger", "message"),
    [
        (
            "kafka-thread",
            b"[2026-11-20 15:29:54,629] INFO [main] starting (kafka.server.KafkaServer)",
            "INFO",
            "kafka.server.KafkaServer",
            b"starting",
        ),
        (
            "level-thread-logger",
            b"2026-11-20 15:29:54,629 INFO  [main] kafka.server.KafkaServer - starting",
            "INFO",
            "kafka.server.KafkaServer",
            b"starting",
        ),
        (
            "level-thread-logger",
            b"2026-11-20T15:29:54.629Z WARN  [main] KafkaServer:66 - a - b (c.D)",
            "WARN",
            "KafkaServer",
            b"a - b (c.D)",
        ),
        (
            "thread-level-logger",
            b"2026-11-20 15:29:54,629 [main] INFO  kafka.server.KafkaServer - starting",
            "INFO",
            "kafka.server.KafkaServer",
            b"starting",
        ),
        ("level-logger", b"2026-11-20 15:29:54,629 INFO KafkaServer: starting", "INFO", "KafkaServer", b"starting"),
        (
            "bare-time",
            b"2026-11-20 15:29:54,629 INFO [Broker id=1] x (state.change.logger) [main]",
            "INFO",
            "state.change.logger",
            b"[Broker id=1] x",
        ),
        (
            "bare-time",
            b"2026-11-20 15:29:54.629 INFO [Broker id=1] x (state.change.logger)",
            "INFO",
            "state.change.logger",
            b"[Broker id=1] x",
        ),
        (
            "json",
            b'{"@timestamp":"2026-11-20T15:29:54.629Z","log.level":"INFO","log.logger":"a.B","message":"x"}',
            "INFO",
            "a.B",
            b"x",
        ),
        (
            "json",
            b'{"instant":{"epochSecond":1795188594,"nanoOfSecond":629000000},"level":"WARN","loggerName":"a.B",'
            b'"message":"x","thrown":{"extendedStackTrace":"E: y\\n\\tat z"}}',
            "WARN",
            "a.B",
            b"x\nE: y\n\tat z",
        ),
        ("json", b'{"timeMillis":1795188594629,"level":"ERROR","logger":"a.B","msg":"x"}', "ERROR", "a.B", b"x"),
        (
            "json",
            b'{"@timestamp":"2026-11-20T16:29:54.629+01:00","level":"INFO","logger_name":"a.B","message":"x"}',
            "INFO",
            "a.B",
            b"x",
        ),
    ],
)
def test_other_layouts(name: str, text: bytes, level: str, logger: str, message: bytes) -> None:
    layout = probe([b"\tat a.b(C.java:1)", text, b"", text])
    assert layout is not None
    assert layout.name == name
    assert layout.start.match(text)
    assert parse(name, text) == (AT, level, logger, message)


def test_probe_prefers_the_default_layout_for_its_own_lines() -> None:
    lines = [SHRINK, b"[2026-11-20 15:39:28,375] INFO [kafka-log-cleaner-thread-0], Starting  (kafka.log.LogCleaner)"]
    assert probe(lines).name == "kafka"
    assert probe(CONFIG.split(b"\n") + FETCH_ERROR.split(b"\n")).name == "kafka"


def test_probe_knows_what_it_does_not_know() -> None:
    assert probe([]) is None
    assert probe([b"Nov 20 15:29:54 host kafka[1]: hello", b""]) is None
    assert probe([b"\tat a.b(C.java:1)"]) is None


def test_zone_and_the_hour_that_comes_twice() -> None:
    text = SHRINK.replace(b"2026-11-20 15", b"2026-10-25 02")
    utc = datetime(2026, 10, 25, 0, 29, 54, 629000, UTC)  # the earlier one, still in summer time
    assert parse("kafka", text, "Europe/Berlin").time_us == (utc - EPOCH) // MICROSECOND


@pytest.mark.parametrize("stamp", [b"2026-13-20 15:29:54,629", b"2026-11-20 15:29:60,000", b"2026-11-20 15:29:5x,629"])
def test_impossible_times_do_not_parse(stamp: bytes) -> None:
    assert parse("kafka", SHRINK.replace(b"2026-11-20 15:29:54,629", stamp)) is None


@given(st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2100, 1, 1)), st.sampled_from([3, 6, 9, 0]))
def test_clock_reads_what_was_written(moment: datetime, digits: int) -> None:
    kept = moment.replace(microsecond=moment.microsecond // 1000 * 1000 if digits == 3 else moment.microsecond)
    kept = kept.replace(microsecond=0) if digits == 0 else kept
    fraction = f",{kept.microsecond:06}000"[: digits + 1] if digits else ""
    text = f"{kept:%Y-%m-%d %H:%M:%S}{fraction}".encode()
    assert Clock(UTC).read(text) == (kept.replace(tzinfo=UTC) - EPOCH) // MICROSECOND


@given(st.binary(max_size=300))
def test_no_parser_raises(text: bytes) -> None:
    for layout in LAYOUTS:
        parser = layout.parser(UTC)
        for candidate in (text, SHRINK[:31] + text, b"[2026-11-20 " + text, b'{"message":' + text):
            parser(candidate)
    probe(text.split(b"\n"))


def test_a_json_record_may_hold_half_a_surrogate() -> None:
    line = rb'{"timestamp":"2026-11-20T15:33:21.101Z","level":"INFO","loggerName":"a.B","message":"group \ud800"}'
    head = BY_NAME["json"].parser(UTC)(line)
    assert head is not None
    assert head.message == rb"group \ud800"
