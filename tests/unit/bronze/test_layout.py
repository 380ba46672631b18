"""Layouts: probing, and taking records apart. Lines are real ones, in several layouts."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.bronze.layout import EPOCH, MICROSECOND, Clock, Layout
from highwater.pipelines.bronze.layouts.infer import infer
from highwater.pipelines.bronze.layouts.loggers import Loggers
from highwater.pipelines.bronze.layouts.patterns import KAFKA, Names, split_tail
from highwater.pipelines.bronze.layouts.structured import layout_of_name

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
    return layout_of_name(name).parser(ZoneInfo(zone))(text)


def probe(lines: list[bytes]) -> Layout | None:
    return infer(lines).layout


def test_default_layout_one_line() -> None:
    head = parse(KAFKA, SHRINK)
    assert head.time_us == AT
    assert (head.level, head.logger) == ("INFO", "kafka.cluster.Partition")
    assert head.message.startswith(b"[Partition orders-4 broker=1] Shrinking")
    assert head.message.endswith(b"endOffset: 47).")


def test_logger_stands_before_a_stack_trace() -> None:
    head = parse(KAFKA, FETCH_ERROR)
    assert head.logger == "kafka.server.ReplicaFetcherThread"
    assert b"FetchRequest@8eb85ff\njava.io.IOException: Connection to 3" in head.message


def test_logger_stands_before_an_exception_without_frames() -> None:
    head = parse(KAFKA, NO_FRAMES)
    assert head.logger == "kafka.server.ReplicaManager"
    assert head.message.endswith(b"for partition t-0")
    assert b"partition t-0\norg.apache.kafka.common.errors" in head.message


def test_logger_stands_on_the_last_line_of_a_configuration_dump() -> None:
    head = parse(KAFKA, CONFIG)
    assert head.logger == "kafka.server.KafkaConfig"
    assert head.message.endswith(b"\tzookeeper.ssl.truststore.type = null\n")


def test_a_value_that_looks_like_a_logger_does_not_end_the_message() -> None:
    text = b"KafkaConfig values: \n\tengine = a.Engine (a.Engine)\n\tz = 1\n (kafka.server.KafkaConfig)"
    assert split_tail(text, Names())[0] == "kafka.server.KafkaConfig"


def test_a_padded_level_is_no_part_of_the_message() -> None:
    assert parse(KAFKA, SHRINK.replace(b"INFO ", b"INFO  ")).message == parse(KAFKA, SHRINK).message


def test_a_cut_record_has_no_logger() -> None:
    head = parse(KAFKA, SHRINK[:80])
    assert head.logger is None
    assert head.message == SHRINK[31:80]


ZONED = "yyyy-MM-dd'T'HH:mm:ss.SSS" + "X" * 3
#: Names of layouts, and a line of each; what it says is the same.
LINES = {
    "[%d] %p [%t] %m (%c)": "[2026-11-20 15:29:54,629] INFO [main] {m} ({c})",
    "%d %-5p [%t] %c - %m": "2026-11-20 15:29:54,629 INFO  [main] {c} - {m}",
    f"%d{{{ZONED}}} %-5p [%t] %c{{1}}:%L - %m": "2026-11-20T15:29:54.629Z INFO  [main] KafkaServer:66 - {m}",
    "%d [%t] %-5p %c - %m": "2026-11-20 15:29:54,629 [main] INFO  {c} - {m}",
    "%d %p %c{1}: %m": "2026-11-20 15:29:54,629 INFO KafkaServer: {m}",
    "%d %p %m (%c) [%t]": "2026-11-20 15:29:54,629 INFO {m} ({c}) [main]",
    "%d{yyyy-MM-dd HH:mm:ss.SSS} %p %m (%c)": "2026-11-20 15:29:54.629 INFO {m} ({c})",
    f'{{"@timestamp":"%d{{{ZONED}}}","log.level":"%p","log.logger":"%c","message":"%m"}}': '{"@timestamp":'
    '"2026-11-20T15:29:54.629Z","log.level":"INFO","log.logger":"kafka.server.KafkaServer","message":"{m}"}',
    '{"timeMillis":"%d","level":"%p","logger":"%c","msg":"%m"}': '{"timeMillis":1795188594629,"level":"INFO",'
    '"logger":"kafka.server.KafkaServer","msg":"{m}"}',
    "%d{UNIX_MILLIS} %c{1} %p %m": "1795188594629 KafkaServer INFO {m}",
    "%d{dd MMM yyyy HH:mm:ss,SSS} [%t] %p %c - %m": "20 Nov 2026 15:29:54,629 [main] INFO {c} - {m}",
    "%d{dd.MM.yyyy HH:mm:ss,SSS} [%t] %p %c - %m": "20.11.2026 15:29:54,629 [main] INFO {c} - {m}",
    "%d{MM/dd/yyyy hh:mm:ss.SSS a} [%t] %p %c - %m": "11/20/2026 3:29:54.629 PM [main] INFO {c} - {m}",
    "[%p] %d{yyyy/MM/dd HH:mm:ss.SSS} (%t) %c{1} - %m": "[INFO] 2026/11/20 15:29:54.629 (main) k.s.KafkaServer - {m}",
    "%d|%p|%t|%c{1}|%m": "2026-11-20 15:29:54,629|INFO|main|server.KafkaServer|{m}",
    "%d %p - [%c{1}] %t - %m": "2026-11-20 15:29:54,629 info - [KafkaServer] kafka shutdown hook - {m}",
}
STARTED = "[KafkaServer id=1] started"


@pytest.mark.parametrize("name", LINES)
def test_a_layout_is_inferred_and_read(name: str) -> None:
    text = LINES[name].replace("{m}", STARTED).replace("{c}", "kafka.server.KafkaServer").encode()
    layout = probe([b"\tat a.b(C.java:1)", text, b"", text])
    assert layout is not None
    assert layout.name == name
    assert layout.start.match(text)
    assert parse(name, text) == (AT, "INFO", "kafka.server.KafkaServer", STARTED.encode())


def test_a_trace_follows_the_message_of_an_object() -> None:
    text = (
        b'{"instant":{"epochSecond":1795188594,"nanoOfSecond":629000000},"level":"WARN","loggerName":"kafka.log.Log",'
        b'"message":"x","thrown":{"extendedStackTrace":"a.E: y\\n\\tat z"}}'
    )
    layout = probe([text])
    assert layout is not None
    assert layout.parser(UTC)(text) == (AT, "WARN", "kafka.log.Log", b"x\na.E: y\n\tat z")


@pytest.mark.parametrize(
    ("time", "missing"),
    [("03/04/2026 15:29:54,629", "day and month"), ("15:29:54,629", "no date"), ("Nov 20 15:29:54", "no year")],
)
def test_a_time_that_does_not_say_its_day_is_refused(time: str, missing: str) -> None:
    found = infer([f"{time} INFO [main] kafka.server.KafkaServer - {STARTED}".encode()] * 3)
    assert found.layout is None
    assert missing in (found.missing or "")


def test_other_lines_tell_a_day_from_a_month() -> None:
    lines = [f"{day}/11/2026 15:29:54 INFO kafka.server.KafkaServer - {STARTED}".encode() for day in ("03", "14")]
    assert infer(lines).layout.name == "%d{dd/MM/yyyy HH:mm:ss} %p %c - %m"


def test_what_a_message_of_old_begins_with_is_no_field() -> None:
    text = "Broker 1 skipped the become-leader state change after marking its partition as leader with correlation id"
    text += " {} from controller 4 epoch 1 for partition t-0 since it is already the leader for the partition."
    lines = [
        f"2017-11-20 15:29:54,6{id_} TRACE {text.format(id_)} (state.change.logger) [main]".encode()
        for id_ in range(10, 60)
    ]
    found = infer(lines).layout
    assert found is not None
    assert found.name == "%d %p %m (%c) [%t]"


@pytest.mark.parametrize(
    ("name", "message", "logger"),
    [
        ("UnifiedLog", b"x", "kafka.log.UnifiedLog"),
        ("o.a.k.s.i.log.UnifiedLog", b"x", "org.apache.kafka.storage.internals.log.UnifiedLog"),
        ("logger", b"[Broker id=1] Transitioning 1 partition(s) to local leaders.", "state.change.logger"),
        ("logger", b"Completed request:{}", None),
        ("SnapshotGenerator", b"nothing that it prints", None),
        ("Nobodys", b"x", "Nobodys"),
        ("Logging", b"[KafkaServer id=1] started", "kafka.server.KafkaServer"),
        ("Logging", b"Broker 1 finished handling stop replica (delete=true) for partition t-0", "state.change.logger"),
        ("Logging", b"nothing that Kafka prints", None),
    ],
)
def test_a_name_without_its_package_is_resolved_or_stays_open(name: str, message: bytes, logger: str | None) -> None:
    assert Loggers().resolve(name.encode(), message) == logger


def test_probe_prefers_the_default_layout_for_its_own_lines() -> None:
    lines = [SHRINK, b"[2026-11-20 15:39:28,375] INFO [kafka-log-cleaner-thread-0], Starting  (kafka.log.LogCleaner)"]
    assert probe(lines).name == KAFKA
    assert probe(CONFIG.split(b"\n") + FETCH_ERROR.split(b"\n")).name == KAFKA


def test_probe_knows_what_it_does_not_know() -> None:
    assert probe([]) is None
    assert probe([b"Nov 20 15:29:54 host kafka[1]: hello", b""]) is None
    assert probe([b"\tat a.b(C.java:1)"]) is None


def test_zone_and_the_hour_that_comes_twice() -> None:
    text = SHRINK.replace(b"2026-11-20 15", b"2026-10-25 02")
    utc = datetime(2026, 10, 25, 0, 29, 54, 629000, UTC)  # the earlier one, still in summer time
    assert parse(KAFKA, text, "Europe/Berlin").time_us == (utc - EPOCH) // MICROSECOND


@pytest.mark.parametrize("stamp", [b"2026-13-20 15:29:54,629", b"2026-11-20 15:29:60,000", b"2026-11-20 15:29:5x,629"])
def test_impossible_times_do_not_parse(stamp: bytes) -> None:
    assert parse(KAFKA, SHRINK.replace(b"2026-11-20 15:29:54,629", stamp)) is None


@given(st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2100, 1, 1)), st.sampled_from([3, 6, 9, 0]))
def test_clock_reads_what_was_written(moment: datetime, digits: int) -> None:
    kept = moment.replace(microsecond=moment.microsecond // 1000 * 1000 if digits == 3 else moment.microsecond)
    kept = kept.replace(microsecond=0) if digits == 0 else kept
    fraction = f",{kept.microsecond:06}000"[: digits + 1] if digits else ""
    text = f"{kept:%Y-%m-%d %H:%M:%S}{fraction}".encode()
    assert Clock(UTC).read(text) == (kept.replace(tzinfo=UTC) - EPOCH) // MICROSECOND


@given(st.binary(max_size=300))
def test_no_parser_raises(text: bytes) -> None:
    for layout in map(layout_of_name, [KAFKA, *LINES]):
        parser = layout.parser(UTC)
        for candidate in (text, SHRINK[:31] + text, b"[2026-11-20 " + text, b'{"message":' + text):
            parser(candidate)
    probe(text.split(b"\n"))


def test_a_json_record_may_hold_half_a_surrogate() -> None:
    line = rb'{"timestamp":"2026-11-20T15:33:21.101Z","level":"INFO","loggerName":"a.B","message":"group \ud800"}'
    layout = layout_of_name('{"timestamp":"%d{' + ZONED + '}","level":"%p","loggerName":"%c","message":"%m"}')
    head = layout.parser(UTC)(line)
    assert head is not None
    assert head.message == rb"group \ud800"


def _text_requests(number: int) -> bytes:
    return (
        f"[2026-11-20 15:29:{number:02},629] DEBUG Completed request:RequestHeader(apiKey=METADATA, apiVersion=5, "
        f"clientId=rdkafka, correlationId={number}) -- {{topics=[],allow_auto_topic_creation=false}},response:"
        "{throttle_time_ms=0,brokers=[{node_id=2,host=127.0.0.1,port=29094,rack=null}],"
        "cluster_id=exUvmEosTxOfIKRXxNGvbg,controller_id=1,topic_metadata=[]} from connection "
        f"127.0.0.1:29093-127.0.0.1:33912-{number};totalTime:1.832,requestQueueTime:0.104,localTime:1.619,"
        "remoteTime:0.0,throttleTime:0.44,responseQueueTime:0.052,sendTime:0.079,securityProtocol:PLAINTEXT,"
        "principal:User:ANONYMOUS,listener:PLAINTEXT"
    ).encode()


def test_words_of_a_text_request_are_no_fields_where_no_logger_stands() -> None:
    layout = probe([_text_requests(number) for number in range(20)])
    assert layout is not None
    assert layout.name == "[%d] %p %m"


def test_what_some_lines_begin_with_in_brackets_is_their_message() -> None:
    fetching = (
        "[ReplicaManager broker=1] Fetching log segment for partition orders-3, offset 173, partition fetch size "
        "1048576, remaining response limit 10485760 (kafka.server.ReplicaManager)"
    )
    unblocked = (
        "Request key TopicPartitionOperationKey(orders,1) unblocked 1 Fetch operations "
        "(kafka.server.DelayedOperationPurgatory)"
    )
    lines = [
        f"[2026-11-20 15:29:{number:02},629] DEBUG [kafka-scheduler-4] {fetching if number % 5 else unblocked}".encode()
        for number in range(20)
    ]
    layout = probe(lines)
    assert layout is not None
    assert layout.name == "[%d] %p [%t] %m (%c)"


def test_a_caller_with_its_method_is_a_class() -> None:
    """Patterns with %C.%M print the class that calls, which for Scala's classes is a trait."""
    lines = [
        f"2026-03-10 16:37:{second:02},136|INFO|main|{caller}|{message}|".encode()
        for second, (caller, message) in enumerate(
            (
                ("kafka.utils.Logging$class.info:70", "[KafkaServer id=2] started"),
                ("kafka.utils.Logging$class.warn:87", "[ReplicaManager broker=2] Stopping serving replicas in dir /a"),
                ("org.apache.zookeeper.ZooKeeper.<init>:438", "Initiating client connection, connectString=a:1 sess"),
                ("org.apache.kafka.common.utils.AppInfoParser$AppInfo.<init>:109", "Kafka version : 1.1.1"),
            )
            * 4
        )
    ]
    layout = probe(lines)
    assert layout is not None
    heads = [head for line in lines[:4] if (head := layout.parser(UTC)(line)) is not None]
    assert [head.logger for head in heads] == [
        "kafka.server.KafkaServer",
        "kafka.server.ReplicaManager",
        "org.apache.zookeeper.ZooKeeper",
        "org.apache.kafka.common.utils.AppInfoParser$AppInfo",
    ]
