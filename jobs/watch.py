"""``highwater watch``: audits new lines repeatedly, and reports incidents that begin or end.

Each round is a run like the hourly one and leaves the same results. The reported incidents are stored in the folder of
the report, so that a killed watch resumes. No incident is reported twice, and undelivered alerts are sent again.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec
import orjson

from highwater.jobs import alerts, steps
from highwater.jobs.alerts import Alert, Undelivered
from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.options import SEVERITIES
from highwater.pipelines.base.console import Console
from highwater.pipelines.base.errors import HighwaterError, InputError
from highwater.pipelines.base.plain import number
from highwater.pipelines.bronze.discover import discover
from highwater.pipelines.bronze.text_sizes import new_bytes
from highwater.pipelines.metrics.live import format_exposition
from highwater.pipelines.report.happened import ALSO_LOGGED, get_account
from highwater.pipelines.report.model import Incident, Report
from highwater.pipelines.storage.place import Place
from highwater.pipelines.storage.store import store_of

#: File of reported incidents, in the folder of the report.
TOLD: Final = "watch.json"
#: Rounds that fail one after another before the watch ends: a disk that is full for a while, logs that rotate.
_FAILURES_MAX: Final = 10
BEGUN, ENDED = "begun", "ended"
#: Behind either: the webhook or the command did not take it.
_UNDELIVERED: Final = ", undelivered"


class Recipients(NamedTuple):
    """Recipients of alerts, besides stdout."""

    webhook: str | None = None  #: None: none
    form: str = "json"  #: of what the webhook is sent, one of `jobs.options.ALERT_FORMATS`
    command: str | None = None  #: None: none
    severity: str = "major"  #: minimum severity to send
    metrics: Place | None = None  #: file for Prometheus; None: none


class _OfRound(Console):
    """The console of one audit round: passes on each message for the user only once."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._warned: set[str] = set()

    def warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._console.warn(text)


def watch(run: steps.Run, logs: Sequence[Place], every_s: float, recipients: Recipients, rounds: int = 0) -> ExitCode:
    """Audit as logs grow, until the watch is interrupted.

    Args:
        every_s: seconds from the start of a round to the start of the next.
        rounds: number of rounds. 0 for no limit.

    Raises:
        HighwaterError: the first round fails, or ten consecutive rounds do.
    """
    alerts.require_recipients(recipients.webhook, recipients.form, recipients.command)
    quiet = replace(run, console=_OfRound(run.console))
    states, done, failures = _read_states(run.out), 0, 0
    run.console.note(f"watching, a round every {every_s:.0f} s; the page is {run.out / 'report.html'}; Ctrl-C ends it")
    with _interrupted_by(signal.SIGTERM):
        try:
            while not rounds or done < rounds:
                begun = time.monotonic()
                try:
                    if not done or _has_news(run, logs):
                        states = _run_round(quiet, run.console, logs, states, recipients, begun)
                    done, failures = done + 1, 0
                except (HighwaterError, OSError) as error:
                    failures += 1
                    if not done or failures == _FAILURES_MAX:
                        raise
                    run.console.warn(f"this round failed, the next one tries again: {error}")
                # A log that rotated while it was read is whole by now: the first failure is made good at once.
                if failures != 1 and (not rounds or done < rounds):
                    time.sleep(max(0.0, begun + every_s - time.monotonic()))
        except KeyboardInterrupt:
            run.console.note("stopped; the same command resumes from here")
    return ExitCode.CLEAN


def _has_news(run: steps.Run, logs: Sequence[Place]) -> bool:
    files = discover(logs, run.config.ingest.include, run.config.ingest.exclude).files
    return new_bytes(files, run.lake) > 0


def _run_round(
    quiet: steps.Run,
    console: Console,
    logs: Sequence[Place],
    states: dict[str, str] | None,
    recipients: Recipients,
    begun: float,
) -> dict[str, str]:
    report = steps.audited(quiet, logs)
    if states is None:
        states = _start_states(report, console)
    states = dict(states)
    again, news = find_undelivered(report, states), find_due(report, states)
    for alert in news:
        console.prose(show_alert(alert))
    for alert in (*again, *news):
        state = ENDED if alert.has_ended else BEGUN
        try:
            _deliver(alert, recipients)
        except Undelivered as problem:
            console.warn(f"{problem}; the next round tries again")
            state += _UNDELIVERED
        states[alert.incident.incident_id] = state
    if recipients.form == "alertmanager":
        _remind(report, states, recipients, console)
    store_of(quiet.out).replace(quiet.out / TOLD, orjson.dumps(states, option=orjson.OPT_INDENT_2))
    if recipients.metrics is not None:
        text = format_exposition(report, datetime.now(UTC).timestamp(), time.monotonic() - begun)
        store_of(recipients.metrics).replace(recipients.metrics, text.encode())
    return states


def _start_states(report: Report, console: Console) -> dict[str, str]:
    """Print how many incidents ended before the watch began. Return their states by incident id."""
    over = {incident.incident_id: ENDED for incident in _select_incidents(report) if incident.end_time is not None}
    if over:
        console.result(f"{number(len(over), 'incident')} ended before the watch began: highwater incidents")
    return over


def find_undelivered(report: Report, states: dict[str, str]) -> list[Alert]:
    """Return the alerts that could not be delivered in the last round.

    Args:
        states: state by incident id.
    """
    return [
        Alert(incident, state.startswith(ENDED))
        for incident in _select_incidents(report)
        if (state := states.get(incident.incident_id, "")).endswith(_UNDELIVERED)
    ]


def find_due(report: Report, states: dict[str, str]) -> list[Alert]:
    """Return due alerts in time order: incidents that began, and announced incidents that ended.

    An incident that has already ended when first seen begins in this round and ends in the next. A service that
    receives both at once would notify no one.

    Args:
        states: state by incident id.
    """
    begun = [incident for incident in _select_incidents(report) if incident.incident_id not in states]
    ended = [
        incident
        for incident in _select_incidents(report)
        if states.get(incident.incident_id) == BEGUN and incident.end_time is not None
    ]
    return sorted(
        [*(Alert(incident, False) for incident in begun), *(Alert(incident, True) for incident in ended)],
        key=lambda alert: alert.incident.end_time or "" if alert.has_ended else alert.incident.start_time,
    )


def _select_incidents(report: Report) -> Iterable[Incident]:
    return [incident for incident in report.incidents if incident.kind != ALSO_LOGGED]


def show_alert(alert: Alert) -> str:
    """Return an alert in one line."""
    incident = alert.incident
    if alert.has_ended:
        return f"{incident.end_time}  ended  {incident.sentence} [{incident.incident_id[:12]}]"
    said = f"{incident.start_time}  {incident.severity}  {get_account(incident)}"
    return f"{said} [{incident.incident_id[:12]}]"


def _deliver(alert: Alert, recipients: Recipients) -> None:
    if SEVERITIES.index(alert.incident.severity) > SEVERITIES.index(recipients.severity):
        return
    if recipients.webhook is not None:
        alerts.post(recipients.webhook, recipients.form, alert)
    if recipients.command is not None:
        alerts.call(recipients.command, alert)


def _remind(report: Report, states: dict[str, str], recipients: Recipients, console: Console) -> None:
    """Repeat alerts for lasting incidents to Alertmanager, which closes alerts that are not repeated."""
    for incident in _select_incidents(report):
        if states.get(incident.incident_id) == BEGUN and incident.end_time is None:
            try:
                _deliver(Alert(incident, False), recipients._replace(command=None))
            except Undelivered as problem:
                console.warn(str(problem))


def _read_states(out: Place) -> dict[str, str] | None:
    """Return the state by incident id that an earlier watch stored. None if there is none."""
    store = store_of(out)
    if not store.is_file(out / TOLD):
        return None
    try:
        return msgspec.json.decode(store.read(out / TOLD), type=dict[str, str])
    except (msgspec.DecodeError, RecursionError):
        remedy = "restore it, or remove it: the watch starts over, and reports ongoing incidents again"
        raise InputError(out / TOLD, "is damaged, expected states by incident", remedy) from None


@contextmanager
def _interrupted_by(number: signal.Signals) -> Iterator[None]:
    """Handle the signal of a service manager like Ctrl-C, while the context is open."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(number, interrupt)
    try:
        yield
    finally:
        signal.signal(number, before)
