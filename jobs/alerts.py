"""Alerts about incidents: request bodies of services, and delivery."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from threading import Thread
from typing import Any, Final, NamedTuple
from urllib.request import getproxies, proxy_bypass

import orjson
import urllib3

from highwater.pipelines.base.errors import ConfigError
from highwater.pipelines.report.happened import get_account, show_bug, show_window
from highwater.pipelines.report.model import Incident

#: PagerDuty's key is a secret, which the list of processes would show.
KEY_VARIABLE: Final = "HIGHWATER_PAGERDUTY_KEY"
_TIMEOUT_S: Final = 20
_PAGERDUTY_SEVERITIES: Final = {"critical": "critical", "major": "error", "minor": "warning", "info": "info"}
#: PagerDuty takes no longer summary.
_SUMMARY_MAX: Final = 1024


class Alert(NamedTuple):
    """An incident that begins, or the end of one announced before."""

    incident: Incident
    has_ended: bool


class Undelivered(Exception):
    """Error of an alert that was not delivered."""


def require_recipients(webhook: str | None, form: str, command: str | None) -> None:
    """Check that alerts can be delivered, before the first alert.

    Args:
        webhook: URL that receives alerts. None if unused.
        form: format of the request body, for example ``slack``.
        command: command that is run for each alert. None if unused.

    Raises:
        ConfigError: the webhook is not a valid URL, PagerDuty's key is not in the environment, or the command cannot be
            run.
    """
    # The address may hold a token, and is not printed.
    if webhook is not None and not is_address(webhook):
        problem = "is not an address; write it like https://hooks.example.com/T0, without blanks"
        raise ConfigError("command line", "--webhook", problem)
    if command is not None:
        try:
            program = [*shlex.split(command), ""][0]
        except ValueError as error:
            raise ConfigError("command line", "--command", f"cannot be split ({error}); mend its quotes") from None
        if shutil.which(program) is None:
            raise ConfigError("command line", "--command", f"{program!r} cannot be run; name a program that can")
    if form == "pagerduty" and not os.environ.get(KEY_VARIABLE):
        raise ConfigError(
            "environment", KEY_VARIABLE, "is not set; set it to the routing key of an Events API v2 integration"
        )


def is_address(text: str) -> bool:
    """Return True if a text is a URL of HTTP with a host, in printable ASCII without blanks."""
    if re.fullmatch(r"https?://[!-~]+", text) is None:
        return False
    try:
        return bool(urllib3.util.parse_url(text).host)
    except (urllib3.exceptions.HTTPError, ValueError):
        return False


def build_body(form: str, alert: Alert, environment: Mapping[str, str] = os.environ) -> bytes:
    """Return the request body of an alert.

    Args:
        form: format of the service, for example ``slack``.
    """
    makers = {"json": _fill_json, "slack": _fill_slack, "pagerduty": _fill_pagerduty, "alertmanager": _fill_alert}
    return orjson.dumps(makers[form](alert, environment))


def _fill_json(alert: Alert, _: Mapping[str, str]) -> Any:
    return {"status": "ended" if alert.has_ended else "begun", "incident": alert.incident.model_dump(mode="json")}


def _fill_slack(alert: Alert, _: Mapping[str, str]) -> Any:
    incident = alert.incident
    state = "ended" if alert.has_ended else incident.severity
    lines = [f"*{state}* {show_window(incident)} UTC: {get_account(incident)}"]
    if incident.advice and not alert.has_ended:
        lines.append(incident.advice)
    text = "\n".join(lines).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": text}


def _fill_pagerduty(alert: Alert, environment: Mapping[str, str]) -> Any:
    incident = alert.incident
    event = {
        "routing_key": environment.get(KEY_VARIABLE, ""),
        "event_action": "resolve" if alert.has_ended else "trigger",
        "dedup_key": f"highwater-{incident.incident_id}",
    }
    if alert.has_ended:
        return event
    return event | {
        "payload": {
            "summary": incident.sentence[:_SUMMARY_MAX],
            "source": f"kafka {incident.cluster_id}",
            "severity": _PAGERDUTY_SEVERITIES[incident.severity],
            "timestamp": incident.start_time,
            "component": ", ".join(f"broker {broker}" for broker in incident.broker_ids),
            "class": incident.kind,
            "custom_details": {
                "advice": incident.advice,
                "known_bug": show_bug(incident),
                "partitions": list(incident.topic_partitions),
                **incident.figures,
            },
        }
    }


def _fill_alert(alert: Alert, _: Mapping[str, str]) -> Any:
    """Return the alert as a list for version 2 of Alertmanager's API."""
    incident = alert.incident
    labels = {
        "alertname": f"highwater_{incident.kind}",
        "severity": incident.severity,
        "cluster": incident.cluster_id,
        "incident_id": incident.incident_id,
    }
    alert_fields = {
        "labels": labels,
        "annotations": {"summary": incident.sentence, "description": incident.advice, "known_bug": show_bug(incident)},
        "startsAt": incident.start_time,
    }
    return [alert_fields | {"endsAt": incident.end_time} if alert.has_ended and incident.end_time else alert_fields]


def post(url: str, form: str, alert: Alert) -> None:
    """Send an alert.

    Raises:
        Undelivered: the service did not accept the alert.
    """
    outcome = [f"no answer within {_TIMEOUT_S} s"]
    content = build_body(form, alert)
    # The client's timeout applies to a single read: a response of one byte per second would never time out.
    sending = Thread(target=lambda: outcome.__setitem__(0, _send(url, content)), daemon=True)
    sending.start()
    sending.join(_TIMEOUT_S)
    if outcome[0]:
        raise Undelivered(f"the webhook did not take incident {alert.incident.incident_id} ({outcome[0]})")


def _send(url: str, content: bytes) -> str:
    """Send a request body. Return the reason if the service did not accept the body, else an empty text.

    The client's error texts may contain the URL with a token. The reason is only the kind of the error.
    """
    address = urllib3.util.parse_url(url)
    proxy = None if proxy_bypass(address.netloc or "") else getproxies().get(address.scheme or "")
    headers = {"Content-Type": "application/json", "User-Agent": "highwater"}
    try:
        with urllib3.ProxyManager(proxy) if proxy else urllib3.PoolManager() as client:
            answer = client.request(
                *("POST", url),
                body=content,
                headers=headers,
                timeout=urllib3.Timeout(total=_TIMEOUT_S),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            answer.close()
    except urllib3.exceptions.NewConnectionError:
        return "it cannot be reached"
    except urllib3.exceptions.TimeoutError:
        return f"no answer within {_TIMEOUT_S} s"
    except urllib3.exceptions.SSLError:
        return "its certificate was not accepted"
    except urllib3.exceptions.HTTPError as error:
        is_answer = isinstance(error, urllib3.exceptions.ProtocolError | urllib3.exceptions.InvalidHeader)
        return "its answer is not HTTP, or it ended the connection" if is_answer else "it cannot be reached"
    except Exception as error:  # whatever a service answers, the watch continues
        return type(error).__name__
    return "" if 200 <= answer.status < 300 else f"HTTP status {answer.status}"


def call(command: str, alert: Alert) -> None:
    """Run a command for an alert, without a shell.

    The command receives the incident as JSON on stdin, and the main fields in its environment.

    Raises:
        Undelivered: the command cannot be run, or fails.
    """
    incident = alert.incident
    environment = {
        "HIGHWATER_STATUS": "ended" if alert.has_ended else "begun",
        "HIGHWATER_INCIDENT": incident.incident_id,
        "HIGHWATER_KIND": incident.kind,
        "HIGHWATER_SEVERITY": incident.severity,
        "HIGHWATER_SENTENCE": incident.sentence,
    }
    try:
        subprocess.run(
            shlex.split(command),
            input=build_body("json", alert),
            env={**os.environ, **environment},
            timeout=_TIMEOUT_S,
            check=True,
            stdout=subprocess.DEVNULL,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise Undelivered(f"--command failed for incident {incident.incident_id} ({error})") from None
