"""Lines of any layout are explained, each distinct text once."""

from __future__ import annotations

import json
import subprocess
import sys
from io import BytesIO

import pytest
from click.testing import CliRunner

from highwater.jobs.cli import highwater
from highwater.pipelines.bronze.explain_file import plain_lines
from highwater.pipelines.messages.explain import explain_lines

_MESSAGE = "Stopping serving logs in dir /data/1"
_LOGGER = "kafka.log.LogManager"
LAYOUTS = (
    "[2026-11-20 15:33:21,101] WARN {message} ({logger})",
    "2026-11-20T15:33:21.101Z WARN  [LogDirFailureHandler] {logger} - {message}",
    "kafka-1  | [2026-11-20 15:33:21,101] WARN {message} ({logger})",
    "2026-11-20 15:33:21,101|WARN|LogDirFailureHandler|kafka.utils.Logging$class.warn:66|{message}|",
    '{{"level":"WARN","logger":"{logger}","message":"{message}"}}',
    "Nov 20 15:33:21 host kafka[12]: [15:33:21] [WARN] [{logger}] {message}",
)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_text_is_found_in_each_layout(layout: str) -> None:
    line = layout.format(message=_MESSAGE, logger=_LOGGER)
    (explained,) = explain_lines([line])
    assert explained.message_id == "log.directory_given_up"


def test_each_text_comes_once_with_its_count_and_the_worst_first() -> None:
    retry = LAYOUTS[0].format(
        message="Retrying controlled shutdown after the previous attempt failed...", logger="kafka.server.KafkaServer"
    )
    lines = [retry, retry, "[2026-11-20 15:33:22,101] ERROR What no release logs (kafka.Unknown)"]
    lines += [
        LAYOUTS[0].format(message=f"Stopping serving logs in dir /d{number}", logger=_LOGGER) for number in (1, 2)
    ]
    explained = explain_lines([*lines, "[2026-11-20 15:33:23,101] INFO Nothing of note (kafka.Unknown)"])
    assert [(one.message_id, one.count) for one in explained] == [
        ("log.directory_given_up", 2),
        ("broker.controlled_shutdown_retried", 2),
        (None, 1),
    ]


def test_the_exception_of_a_stack_trace_decides_what_to_do() -> None:
    lines = [
        "[2026-11-20 15:33:21,101] ERROR Error while rolling log segment for a-1 in dir /d (kafka.log.Log)",
        "java.io.IOException: Map failed",
        "\tat sun.nio.ch.FileChannelImpl.map(FileChannelImpl.java:940)",
        "Caused by: java.lang.OutOfMemoryError: Map failed",
    ]
    (explained,) = explain_lines(lines)
    assert str(explained.thrown) == "OutOfMemoryError: Map failed"
    assert "vm.max_map_count" in explained.action
    assert explained.as_json()["exception"]["name"] == "OutOfMemoryError"


@pytest.mark.parametrize(
    "frame",
    [
        "{line}",
        "kafka_1  | {line}",
        "kafka-0 kafka {line}",
        "2026-11-20T15:33:21.101000000Z stdout F {line}",
        '{{"log": {json}, "stream": "stdout", "time": "2026-11-20T15:33:21.101Z"}}',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_the_exception_is_found_in_each_frame_on_stdin(frame: str, encoding: str) -> None:
    logged = [
        "[2026-11-20 15:33:21,101] ERROR Error while rolling log segment for a-1 in dir /d (kafka.log.Log)",
        "java.io.IOException: Map failed",
        "\tat sun.nio.ch.FileChannelImpl.map(FileChannelImpl.java:940)",
        "Caused by: java.lang.OutOfMemoryError: Map failed",
        *(
            f"[2026-11-20 15:33:2{n},101] INFO [Log partition=a-{n}, dir=/d] Loaded (kafka.log.Log)"
            for n in range(2, 9)
        ),
    ]
    content = "".join(frame.format(line=line, json=json.dumps(f"{line}\n")) + "\n" for line in logged)
    (explained,) = explain_lines(plain_lines(BytesIO(content.encode(encoding)), 1 << 16))
    assert (explained.message_id, str(explained.thrown)) == ("log.segment_not_rolled", "OutOfMemoryError: Map failed")
    assert "vm.max_map_count" in explained.action


def test_binary_data_is_refused() -> None:
    result = CliRunner().invoke(highwater, ["explain", "-"], input=bytes(range(256)) * 40)
    assert result.exit_code != 0
    assert "binary" in str(result.exception)


@pytest.mark.parametrize("level", ["INFO", "WARN"])
def test_a_text_of_another_loudness_is_another_text(level: str) -> None:
    logger = "org.apache.kafka.coordinator.group.GroupMetadataManager"
    line = f"[2026-11-20 15:33:21,101] {level} [GroupId g] Member m joined. ({logger})"
    assert [one.message_id for one in explain_lines([line])] == (
        [] if level == "INFO" else ["group_coordinator.group_error_text"]
    )


def _run(*arguments: str, stdin: str = "") -> str:
    result = CliRunner().invoke(highwater, ["explain", *arguments], input=stdin, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_command_reads_a_line_or_stdin_and_prints_json() -> None:
    line = LAYOUTS[0].format(message=_MESSAGE, logger=_LOGGER)
    for answer in (_run(line, "--format", "json"), _run("-", "--format", "json", stdin=f"{line}\n")):
        (explained,) = json.loads(answer)
        assert explained.keys() == {
            *("text", "count", "id", "meaning", "class", "severity", "action", "known_bug", "exception")
        }
        assert explained["id"] == "log.directory_given_up"


@pytest.mark.parametrize("subject", ["committed-data-lost", "broker_died", "OutOfMemoryError"])
def test_the_command_explains_rules_kinds_and_exceptions(subject: str) -> None:
    assert subject in _run(subject)


def test_an_unknown_word_is_refused_with_near_ones() -> None:
    result = CliRunner().invoke(highwater, ["explain", "broker_dies"])
    assert result.exit_code != 0


def test_a_text_of_a_known_class_that_no_entry_has_is_unknown_unless_an_exception_is_all_of_it() -> None:
    line = "[2026-11-20 15:33:21,101] WARN Never seen before (kafka.log.LogManager)"
    (explained,) = explain_lines([line])
    assert explained.message_id is None
    (explained,) = explain_lines([line, "java.io.IOException: x", "\tat a.B.c(B.java:1)"])
    assert explained.message_id == "log.log_cleanup_ignored"


def test_a_line_is_explained_without_spark_or_arrow() -> None:
    code = (
        "import sys; from highwater.jobs.cli import highwater\n"
        "highwater(['explain', 'ERROR Never seen before'], standalone_mode=False)\n"
        "print({'pyspark', 'pyarrow', 'duckdb'} & sys.modules.keys())"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.endswith("set()\n")
