"""Crashes and pauses of JVMs, as hs_err files and GC logs of several releases show them."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from highwater.pipelines.bronze.process_files import GC_LOG, GC_PAUSE, HS_ERR, JVM_CRASH, PAUSES_MAX, remarks, writer_of

_AT_US = round(datetime(2026, 11, 20, 15, 33, 21, tzinfo=UTC).timestamp()) * 1_000_000

#: Lines of a GC log; start after `_AT_US` and length of its pauses, milliseconds.
GC_LOGS = {
    "time,tags (Kafka's default)": (
        "[2026-11-20T15:33:33.345+0000][gc          ] GC(7) Pause Full (G1 Compaction Pause) 23M->9M(24M) 12345.000ms",
        [(0, 12345)],
    ),
    "a comma as the decimal sign": (
        "[2026-11-20T15:33:22.500+0000][12,3s][info][gc] GC(7) Pause Young (Normal) (G1 Evacuation) 5M->4M 1500,000ms",
        [(0, 1500)],
    ),
    "another zone": ("[2026-11-20T16:33:22.000+0100][gc] GC(1) Pause Remark 5M->4M(9M) 1000.000ms", [(0, 1000)]),
    "a safepoint": (
        '[2026-11-20T15:33:23.000+0000][safepoint   ] Safepoint "Cleanup", Time since last: 10 ns, Reaching safepoint: '
        "1999000000 ns, At safepoint: 1000000 ns, Total: 2000000000 ns",
        [(0, 2000)],
    ),
    "a short pause": ("[2026-11-20T15:33:21.000+0000][gc] GC(1) Pause Young (Normal) 5M->4M(9M) 8.000ms", []),
    "a concurrent phase": ("[2026-11-20T15:33:21.000+0000][gc] GC(1) Concurrent Mark Cycle 5000.000ms", []),
    "JDK 8, one line": (
        "2026-11-20T15:33:21.000+0000: 12.345: [GC pause (G1 Evacuation Pause) (young), 0.7500000 secs]",
        [(0, 750)],
    ),
    "JDK 8, times on a further line": (
        "2026-11-20T15:33:21.000+0000: 12.345: [GC pause (G1 Evacuation Pause) (young)\n"
        "   [Parallel Time: 740.1 ms, GC Workers: 8]\n [Times: user=0.01 sys=0.00, real=0.75 secs]",
        [(0, 750)],
    ),
    "JDK 8, a full collection": (
        "2026-11-20T15:33:21.000+0000: 1.0: [Full GC (Ergonomics) [PSYoungGen: 1K->0K(2K)] 3K->2K(9K), 31.5000000 "
        "secs] [Times: user=60.00 sys=0.10, real=31.50 secs]",
        [(0, 31500)],
    ),
    "JDK 8, a concurrent phase": (
        "2026-11-20T15:33:21.000+0000: 1.0: [GC concurrent-mark-end, 5.1230000 secs]",
        [],
    ),
    "seconds since the start only": ("[12.345s][info][gc] GC(7) Pause Full (System.gc()) 5M->4M(9M) 900.000ms", []),
}


@pytest.mark.parametrize("name", GC_LOGS)
def test_long_pauses_of_gc_logs_are_read(name: str) -> None:
    text, pauses = GC_LOGS[name]
    found = remarks(GC_LOG, text.encode().splitlines(), UTC)
    assert [((each.start_us - _AT_US) // 1000, each.duration_us // 1000) for each in found] == pauses
    assert {each.kind for each in found} <= {GC_PAUSE}


def test_the_longest_pauses_are_kept() -> None:
    line = "[2026-11-20T15:33:21.000+0000][gc] GC(1) Pause Full (System.gc()) 5M->4M(9M) {}.000ms"
    lines = (line.format(500 + number).encode() for number in range(2 * PAUSES_MAX))
    found = remarks(GC_LOG, lines, UTC)
    assert min(each.duration_us for each in found) == (500 + PAUSES_MAX) * 1000
    assert len(found) == PAUSES_MAX


_CRASH = """#
# A fatal error has been detected by the Java Runtime Environment:
#
#  SIGBUS (0x7) at pc=0x00007f2b, pid=1, tid=42
#
# Problematic frame:
# v  ~StubRoutines::jbyte_disjoint_arraycopy

---------------  S U M M A R Y ------------

Command Line: -Xmx1G kafka.Kafka /etc/kafka/server.properties
Time: Fri Nov 20 {time} 2026 {zone} elapsed time: 12.3 seconds (0d 0h 0m 12s)
"""
_NO_MEMORY = """#
# There is insufficient memory for the Java Runtime Environment to continue.
# Native memory allocation (mmap) failed to map 65536 bytes for committing reserved memory.
java_command: kafka.Kafka config/server.properties
time: Fri Nov 20 15:33:21 2026
timezone: UTC
elapsed time: 12 seconds (0d 0h 0m 12s)
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (_CRASH.format(time="15:33:21", zone="UTC"), "SIGBUS (0x7) at pc=0x00007f2b, pid=1, tid=42"),
        (_CRASH.format(time="16:33:21", zone="CET"), "SIGBUS (0x7) at pc=0x00007f2b, pid=1, tid=42"),
        (
            _NO_MEMORY,
            "There is insufficient memory for the Java Runtime Environment to continue. Native memory allocation "
            "(mmap) failed to map 65536 bytes for committing reserved memory.",
        ),
    ],
)
def test_a_crash_has_its_reason_and_its_instant(text: str, reason: str) -> None:
    (crash,) = remarks(HS_ERR, text.encode().splitlines(), ZoneInfo("Europe/Berlin"))
    assert (crash.kind, crash.start_us, crash.text) == (JVM_CRASH, _AT_US, reason)


def test_a_crash_of_another_program_is_none_of_a_broker() -> None:
    text = _CRASH.format(time="15:33:21", zone="UTC").replace("kafka.Kafka", "org.apache.zookeeper.Main")
    assert remarks(HS_ERR, text.encode().splitlines(), UTC) == []


def _log(path: str, broker_id: int | None) -> dict[str, object]:
    return {"cluster_id": "c", "broker_id": broker_id, "path": path}


@pytest.mark.parametrize(
    ("path", "broker_id"),
    [
        ("/logs/broker-1/hs_err_pid1.log", 1),
        ("/logs/broker-1/gc/kafkaServer-gc.log", 1),
        ("/logs/broker-2/gc.log", 2),
        ("/logs/hs_err_pid1.log", None),
        ("/elsewhere/gc.log", None),
    ],
)
def test_a_file_is_of_the_broker_whose_logs_are_nearest(path: str, broker_id: int | None) -> None:
    logs = [
        _log("/logs/broker-1/server.log", 1),
        _log("/logs/broker-1/archive.zip!/state-change.log", 1),
        _log("/logs/broker-2/server.log", 2),
        _log("/logs/other/kafka.log", None),
    ]
    assert writer_of(path, logs) == (None if broker_id is None else ("c", broker_id))
