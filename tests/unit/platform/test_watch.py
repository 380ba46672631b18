"""A watch: what is told when, to whom, in whose format, and that it goes on after a failure or a kill."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from highwater.jobs import alerts, cli, steps, watch
from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.options import ALERT_FORMATS
from highwater.jobs.watch import BEGUN, Recipients
from highwater.pipelines.base.config import load_config
from highwater.pipelines.base.errors import EnvironmentProblem, InputError
from highwater.pipelines.metrics.live import GAUGES, build_dashboard, format_exposition
from highwater.pipelines.report.model import Incident, Report
from tests.console import CaptureConsole
from tests.unit.report.sample import report as sample_report


def _incident(name: str, start: str, end: str | None, severity: str = "major", **changed: Any) -> Incident:
    return Incident(
        incident_id=name,
        kind="broker_died",
        severity=severity,
        start_time=start,
        end_time=end,
        broker_ids=(2,),
        partitions=1,
        topic_partitions=("orders-4",),
        sentence="Broker 2 died <without> shutting down.",
        advice="Look outside Kafka.",
        caused_by=None,
        known_bug=None,
        figures={"down_ms": 5.0},
        evidence=(),
        cluster_id="c",
        **changed,
    )


OPEN = _incident("a", "2026-11-20T15:00:00.000Z", None)
OVER = _incident("b", "2026-11-20T14:00:00.000Z", "2026-11-20T14:00:09.000Z")


def _report(*incidents: Incident) -> Report:
    made: Report = sample_report().model_copy(update={"incidents": incidents})
    return made


@pytest.fixture
def run(tmp_path: Path) -> steps.Run:
    (tmp_path / "report").mkdir()
    return steps.Run(load_config(), CaptureConsole(), tmp_path / "lake", tmp_path / "report")


def _rounds(
    monkeypatch: pytest.MonkeyPatch, run: steps.Run, recipients: Recipients, *reports: Report | Exception
) -> list[str]:
    """Watch through rounds with these reports; what was printed."""
    given = iter(reports)

    def audited(*_: object) -> Report:
        report = next(given)
        if isinstance(report, Exception):
            raise report
        return report

    monkeypatch.setattr(steps, "audited", audited)
    monkeypatch.setattr(watch, "_has_news", lambda *_: True)
    done = sum(isinstance(report, Report) for report in reports)
    assert watch.watch(run, (), 0, recipients, done) == ExitCode.CLEAN
    assert isinstance(run.console, CaptureConsole)
    return run.console.texts("result")


def test_what_begins_and_ends_is_told_once(monkeypatch: pytest.MonkeyPatch, run: steps.Run) -> None:
    ended = OPEN.model_copy(update={"end_time": "2026-11-20T15:01:00.000Z"})
    reports = [_report(OVER, OPEN), _report(OVER, OPEN), _report(OVER, ended), _report(OVER, ended)]
    said = _rounds(monkeypatch, run, Recipients(), *reports)
    assert said == [
        "1 incident ended before the watch began: highwater incidents",
        "2026-11-20T15:00:00.000Z  major  Broker 2 died <without> shutting down. [a]",
        "2026-11-20T15:01:00.000Z  ended  Broker 2 died <without> shutting down. [a]",
    ]
    # A watch that was killed goes on from there.
    late = _incident("c", "2026-11-20T15:02:00.000Z", "2026-11-20T15:02:01.000Z", "info")
    said = _rounds(monkeypatch, run, Recipients(), _report(OVER, ended, late), _report(OVER, ended, late))[3:]
    assert [line.split()[1] for line in said] == ["info", "ended"]


def test_a_round_that_fails_is_tried_again_but_not_the_first(monkeypatch: pytest.MonkeyPatch, run: steps.Run) -> None:
    full = EnvironmentProblem("no space left", "make room")
    with pytest.raises(EnvironmentProblem):
        _rounds(monkeypatch, run, Recipients(), full, _report())
    said = _rounds(monkeypatch, run, Recipients(), _report(), full, full, _report(OPEN))
    assert said[-1].startswith("2026-11-20T15:00:00.000Z  major")
    assert isinstance(run.console, CaptureConsole)
    assert sum("no space left" in text for text in run.console.texts("warn")) == 2
    with pytest.raises(EnvironmentProblem):
        _rounds(monkeypatch, run, Recipients(), _report(), *[full] * 10, _report())


def test_the_first_failure_is_made_good_at_once(monkeypatch: pytest.MonkeyPatch, run: steps.Run) -> None:
    """As a log is read that rotates, and that is whole by then."""
    sleeps: list[float] = []
    monkeypatch.setattr(watch.time, "sleep", sleeps.append)
    rotated = EnvironmentProblem("changed while it was read", "run again")
    _rounds(monkeypatch, run, Recipients(), _report(), rotated, _report(), rotated, rotated, _report(), _report())
    assert len(sleeps) == 4, "after each round but the last one, and the second failure in a row"


@pytest.fixture
def service() -> Iterator[tuple[str, list[Any], list[int]]]:
    """A service on loopback: its address, what it was sent, and statuses that it answers with before 200."""
    sent: list[Any] = []
    statuses: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(statuses.pop(0) if statuses else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/token", sent, statuses
    server.shutdown()
    server.server_close()


def test_what_does_not_arrive_is_sent_again_and_printed_once(
    monkeypatch: pytest.MonkeyPatch, run: steps.Run, service: tuple[str, list[Any], list[int]]
) -> None:
    url, sent, statuses = service
    statuses[:] = [503]
    minor = _incident("m", "2026-11-20T15:00:01.000Z", None, "minor")
    said = _rounds(monkeypatch, run, Recipients(url), _report(OPEN, minor), _report(OPEN, minor), _report(OPEN, minor))
    assert [line.split()[1] for line in said] == ["major", "minor"]
    # The minor one is below what a webhook is told of.
    assert [body["incident"]["incident_id"] for body in sent] == ["a", "a"]
    assert isinstance(run.console, CaptureConsole)
    (warned,) = run.console.texts("warn")
    assert "503" in warned
    assert "token" not in warned
    assert json.loads((run.out / watch.TOLD).read_text(encoding="utf-8")) == {"a": BEGUN, "m": BEGUN}


def test_alertmanager_is_reminded_of_what_lasts(
    monkeypatch: pytest.MonkeyPatch, run: steps.Run, service: tuple[str, list[Any], list[int]]
) -> None:
    url, sent, _ = service
    ended = OPEN.model_copy(update={"end_time": "2026-11-20T15:01:00.000Z"})
    _rounds(monkeypatch, run, Recipients(url, "alertmanager"), _report(OPEN), _report(OPEN), _report(ended))
    assert ["endsAt" in alert for (alert,) in sent] == [False, False, False, True]
    assert sent[0][0]["labels"] == {
        "alertname": "highwater_broker_died",
        "severity": "major",
        "cluster": "c",
        "incident_id": "a",
    }


def test_bodies_are_what_services_take() -> None:
    environment = {alerts.KEY_VARIABLE: "k"}
    began = {
        form: json.loads(alerts.build_body(form, alerts.Alert(OVER, False), environment)) for form in ALERT_FORMATS
    }
    assert began["slack"]["text"].startswith(
        "*major* 2026-11-20 14:00:00 to 14:00:09 UTC: Broker 2 died &lt;without&gt;"
    )
    event = began["pagerduty"]
    assert (event["routing_key"], event["event_action"], event["dedup_key"]) == ("k", "trigger", "highwater-b")
    assert event["payload"]["severity"] == "error"
    assert {"summary", "source", "severity", "timestamp"} <= event["payload"].keys()
    ended = json.loads(alerts.build_body("pagerduty", alerts.Alert(OVER, True), environment))
    assert ended == {"routing_key": "k", "event_action": "resolve", "dedup_key": "highwater-b"}


def test_a_command_has_the_incident_on_stdin(monkeypatch: pytest.MonkeyPatch, run: steps.Run, tmp_path: Path) -> None:
    script = tmp_path / "call me"
    script.write_text(f'#!/bin/sh\ncat > "{tmp_path}/stdin"\necho "$HIGHWATER_SEVERITY $1" > "{tmp_path}/told"\n')
    script.chmod(0o755)
    _rounds(monkeypatch, run, Recipients(command=f"'{script}' '$(id); x'"), _report(OPEN))
    assert json.loads((tmp_path / "stdin").read_text())["incident"]["incident_id"] == "a"
    assert (tmp_path / "told").read_text() == "major $(id); x\n"


def test_without_its_key_pagerduty_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(alerts.KEY_VARIABLE, raising=False)
    arguments = ["watch", str(tmp_path), "--webhook", "https://x.test", "--webhook-format", "pagerduty"]
    assert cli.run(arguments) == ExitCode.USAGE
    assert alerts.KEY_VARIABLE in capsys.readouterr().err


def test_metrics_are_read_by_prometheus_and_each_has_a_panel(monkeypatch: pytest.MonkeyPatch, run: steps.Run) -> None:
    file = run.out / "highwater.prom"
    _rounds(monkeypatch, run, Recipients(metrics=file), _report(OPEN, OVER))
    families = {family.name: family for family in text_string_to_metric_families(file.read_text(encoding="utf-8"))}
    open_major = [
        sample.value
        for sample in families["highwater_incidents"].samples
        if sample.labels == {"severity": "major", "state": "open"}
    ]
    assert open_major == [1.0]
    assert sum(sample.value for sample in families["highwater_verdict"].samples) == 1
    drawn = {panel["targets"][0]["expr"].split()[0] for panel in json.loads(build_dashboard())["panels"]}
    assert {gauge.name for gauge in GAUGES} < drawn
    assert set(families) - drawn == {"highwater_round_timestamp_seconds"}
    text = format_exposition(_report(), 1.0, 2.0)
    assert text.endswith("# EOF\n")


#: What a service answers, as it is sent: each is a failed delivery, with its reason.
ANSWERS = {
    "moved": (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", "HTTP status 302"),
    "moved for good": (b"HTTP/1.1 308 Moved\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", "HTTP status 308"),
    "failed": (b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", "HTTP status 500"),
    "text": (b"hello\r\n\r\n", "is not HTTP"),
    "bytes": (b"\x00\xff" * 999, "is not HTTP"),
    "nothing": (b"", "ended the connection"),
    "odd status": (b"HTTP/1.1 abc\r\n\r\n", "is not HTTP"),
    "many headers": (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 101 + b"\r\n", "is not HTTP"),
    "long header": (b"HTTP/1.1 200 OK\r\na: " + b"b" * 70_000 + b"\r\n\r\n", "is not HTTP"),
}


@contextmanager
def _answering(*parts: bytes, pause_s: float = 0.0) -> Iterator[str]:
    """Yield the address of a service that answers one request with parts, a pause after each."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            with suppress(OSError):
                connection, _ = listening.accept()
                with connection:
                    connection.recv(1 << 16)
                    for part in parts:
                        connection.sendall(part)
                        time.sleep(pause_s)

        threading.Thread(target=answer, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/T0/secret-token?key=secret-token"


@pytest.mark.parametrize("kind", ANSWERS)
def test_what_is_no_success_is_a_failed_delivery(kind: str) -> None:
    content, why = ANSWERS[kind]
    with _answering(content) as url, pytest.raises(alerts.Undelivered) as raised:
        alerts.post(url, "json", alerts.Alert(OPEN, False))
    assert why in str(raised.value)
    assert "secret-token" not in str(raised.value)


def test_a_success_is_a_delivery() -> None:
    with _answering(b"HTTP/1.1 204 No Content\r\n\r\n") as url:
        alerts.post(url, "json", alerts.Alert(OPEN, False))


@pytest.mark.parametrize("part", [b"H", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\na: b\r\n"])
def test_an_answer_that_drips_has_one_timeout(part: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "_TIMEOUT_S", 0.6)
    begun = time.monotonic()
    with (
        _answering(part, *[b"a"] * 30, pause_s=0.2) as url,
        pytest.raises(alerts.Undelivered, match="no answer within"),
    ):
        alerts.post(url, "json", alerts.Alert(OPEN, False))
    assert time.monotonic() - begun < 3


def test_who_cannot_be_reached_is_named_without_the_address() -> None:
    with pytest.raises(alerts.Undelivered, match="cannot be reached") as raised:
        alerts.post("http://127.0.0.1:1/secret-token", "json", alerts.Alert(OPEN, False))
    assert "secret-token" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        *("https://hooks.test/secret token", " https://hooks.test/secret", "https:///secret", "https://[::1/secret"),
        *("ftp://hooks.test/secret", "https://hooks.test/secret\n", "https://hooks.test:port/secret"),
        "https://h\xf6.test/secret",
    ],
)
def test_what_is_not_an_address_is_refused_without_it(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["watch", str(tmp_path), "--webhook", url]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert "--webhook: is not an address" in said
    assert "secret" not in said


@pytest.mark.parametrize("content", [b"", b'{"a": "beg', b"[1]", b'{"a": 1}', b"\xff", b"[" * 100_000])
def test_a_damaged_file_of_states_is_named(content: bytes, run: steps.Run) -> None:
    (run.out / watch.TOLD).write_bytes(content)
    with pytest.raises(InputError, match=r"watch\.json: is damaged"):
        watch._read_states(run.out)
