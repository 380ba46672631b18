"""Lines of any layout are explained, each distinct text once."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from io import BytesIO

import pytest
from click.testing import CliRunner
from hypothesis import assume, given
from hypothesis import strategies as st

from highwater.jobs.cli import highwater
from highwater.pipelines.bronze.explain_file import plain_lines
from highwater.pipelines.bronze.layouts.loggers import candidates
from highwater.pipelines.grammars.record import UNPARSED, LogRecord
from highwater.pipelines.grammars.templates import TEMPLATES
from highwater.pipelines.grammars.text_log import parse_text
from highwater.pipelines.incidents.quiet_text import find_quiet
from highwater.pipelines.messages.explain import explain_lines
from tests.bench.incident_examples import EXAMPLES
from tests.examples import examples
from tests.unit.silver.test_text_log import texts

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


@pytest.mark.parametrize(
    ("logger", "message", "message_id", "said"),
    [
        ("kafka.log.Log", "[Log partition=a-1, dir=/d] Truncating to offset 7", "log.truncated", "rows of truncations"),
        ("kafka.utils.Any", "[some-thread]: Starting", "known.thread_started", "reads no fact"),
        ("kafka.network.SocketServer", "[SocketServer brokerId=1] Started", "known.network", "reads no fact"),
    ],
)
def test_a_line_below_warn_is_explained_by_what_is_read_from_it(
    logger: str, message: str, message_id: str, said: str
) -> None:
    (explained,) = json.loads(_run(f"[2026-11-20 15:33:21,101] INFO {message} ({logger})", "--format", "json"))
    assert explained["id"] == message_id
    assert said in explained["meaning"]


def test_each_wording_of_a_text_has_its_source() -> None:
    line = "[2026-11-20 15:33:21,101] INFO [Log partition=a-1, dir=/d] Truncating to offset 7 (kafka.log.Log)"
    assert "Log.truncateTo, 1.1 and later; Log.truncateTo, up to 1.0" in " ".join(_run(line).split())


def test_each_line_that_shows_an_incident_has_an_explanation() -> None:
    """Classes that are made up for a test are left out."""
    records = [line[2:] for example in EXAMPLES.values() for line in example.lines if candidates(line[3])]
    lines = set()
    for level, logger, text in records:
        first, newline, rest = text.partition("\n")
        lines.add(f"[2026-11-20 15:33:21,101] {level} {first} ({logger}){newline}{rest}")
    assert len(lines) > 40
    for line in lines:
        (explained,) = explain_lines(line.split("\n"), True, None, find_quiet)
        assert explained.message_id is not None or explained.cause is not None, line


@examples(200)
@given(st.data())
def test_each_text_that_a_template_reads_is_explained(data: st.DataObject) -> None:
    template = data.draw(st.sampled_from([template for template in TEMPLATES if candidates(template.loggers[0])]))
    text = data.draw(texts(template.pattern)).strip()
    assume("\n" not in text and text and not re.search(r"\b(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b|\)$", text))
    logger = candidates(template.loggers[0])[0]
    read = parse_text(LogRecord("server", 0, "DEBUG", logger, text))
    (explained,) = explain_lines([f"[2026-11-20 15:33:21,101] DEBUG {text} ({logger})"], True, None, find_quiet)
    assert explained.message_id is not None or read.outcome == UNPARSED
