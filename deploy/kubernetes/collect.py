"""Append new lines of pods' logs to files, a folder per pod and a file per hour, through the API of Kubernetes.

The standard library only, so that any image with Python runs it. `kubectl logs` needs an image of its own, and two
calls repeat or lose lines between them: here the time of the last line of each pod is kept. Of a container that was
started again the previous log is read first.

    python collect.py --namespace kafka --selector strimzi.io/component-type=kafka --container kafka --folder /data/logs
"""

from __future__ import annotations

import argparse
import json
import os
import re
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.client import HTTPException
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TIMEOUT_S = 60
SECOND_NS = 1_000_000_000
HOUR_NS = 3600 * SECOND_NS
_STATE = ".collected.json"
#: RFC 3339, as the kubelet writes it before each line.
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)")


class Pod(NamedTuple):
    """A pod with the container that logs."""

    name: str
    container_id: str  #: another one after each start
    has_previous: bool  #: the kubelet has the log of the container before it


class Api:
    """The API of the cluster, with the account of this pod.

    Args:
        address: of the API. None: the one of the cluster that this pod runs in.
    """

    def __init__(self, address: str | None = None) -> None:
        self._address = (
            address or f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
        )
        authority = ACCOUNT / "ca.crt"
        self._context = ssl.create_default_context(cafile=authority) if authority.is_file() else None

    def open(self, path: str, **query: str) -> Any:
        """Return the response to a request."""
        request = urllib.request.Request(f"{self._address}{path}?{urllib.parse.urlencode(query)}")
        token = ACCOUNT / "token"  # rotated: read each time
        if token.is_file():
            request.add_header("Authorization", f"Bearer {token.read_text(encoding='utf-8').strip()}")
        return urllib.request.urlopen(request, timeout=TIMEOUT_S, context=self._context)

    def pods(self, namespace: str, selector: str, container: str) -> list[Pod]:
        """Return the pods whose container has been started, sorted."""
        with self.open(f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector) as response:
            items = json.load(response)["items"]
        found = []
        for item in items:
            for status in item.get("status", {}).get("containerStatuses", []):
                if status["name"] == container and status.get("containerID"):
                    has_previous = "terminated" in status.get("lastState", {})
                    found.append(Pod(item["metadata"]["name"], status["containerID"], has_previous))
        return sorted(found)

    def lines(self, namespace: str, pod: str, since_ns: int, **query: str) -> Iterator[tuple[int, bytes]]:
        """Yield whole lines later than an instant, each with its time. Lines without a time are left out."""
        since = datetime.fromtimestamp(since_ns // SECOND_NS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log"
        with self.open(path, timestamps="true", sinceTime=since, **query) as response:
            for line in response:
                stamp, _, text = line.partition(b" ")
                at_ns = nanoseconds(stamp.decode(errors="replace"))
                if at_ns is not None and at_ns > since_ns and text.endswith(b"\n"):
                    yield at_ns, text


def nanoseconds(stamp: str) -> int | None:
    """Return a time as nanoseconds since the epoch. None if it is not one."""
    match = _STAMP.fullmatch(stamp)
    if match is None:
        return None
    moment = datetime.fromisoformat(match[1] + match[3].replace("Z", "+00:00"))
    return int(moment.timestamp()) * SECOND_NS + int((match[2] or "0").ljust(9, "0")[:9])


class Collector:
    """Files of one container's pods.

    Args:
        folder: where they are, with what was collected before.
        first_hours: of a pod that is new, so many hours are read.
    """

    def __init__(self, api: Api, namespace: str, container: str, folder: Path, first_hours: float) -> None:
        self._api, self._namespace, self._container, self._folder = api, namespace, container, folder
        self._first = timedelta(hours=first_hours)
        self._state_file = folder / _STATE
        self._state: dict[str, Any] = {}
        if self._state_file.is_file():
            self._state = json.loads(self._state_file.read_text(encoding="utf-8"))

    def collect(self, selector: str) -> tuple[int, list[str]]:
        """Append what is new of all pods: the number of lines, and what could not be read."""
        count, problems = 0, []
        pods = self._api.pods(self._namespace, selector, self._container)
        if not pods:
            problems.append(
                f"no pod in namespace {self._namespace} has the labels {selector} and a started {self._container}"
            )
        for pod in pods:
            try:
                count += self._append(pod)
            except (OSError, HTTPException) as error:
                problems.append(f"{pod.name}: {error}")
        return count, problems

    def _append(self, pod: Pod) -> int:
        first_ns = int((datetime.now(UTC) - self._first).timestamp()) * SECOND_NS
        before = self._state.get(pod.name, {"last_ns": first_ns, "container_id": None, "file": "", "size": 0})
        last_ns, size, name = before["last_ns"], before["size"], before["file"]
        count = 0
        is_new_container = before["container_id"] != pod.container_id
        for is_previous in (True, False) if pod.has_previous and is_new_container else (False,):
            query = {"container": self._container} | ({"previous": "true"} if is_previous else {})
            lines = self._api.lines(self._namespace, pod.name, last_ns, **query)
            for hour, of_hour in groupby(lines, key=lambda line: line[0] // HOUR_NS):
                file = f"{pod.name}/server.log.{datetime.fromtimestamp(hour * 3600, UTC):%Y-%m-%d-%H}"
                path = self._folder / file
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("ab") as log:
                    # A run that was killed may have written more than its state says.
                    log.truncate(size if file == name else 0)
                    for at_ns, text in of_hour:
                        log.write(text)
                        last_ns, count = max(last_ns, at_ns), count + 1
                    name, size = file, log.tell()
        self._state[pod.name] = {"last_ns": last_ns, "container_id": pod.container_id, "file": name, "size": size}
        self._save()
        return count

    def _save(self) -> None:
        written = self._state_file.with_suffix(".partial")
        written.write_text(json.dumps(self._state), encoding="utf-8")
        written.replace(self._state_file)

    def drop_older(self, hours: float) -> None:
        """Remove files of hours that ended before."""
        oldest = (datetime.now(UTC) - timedelta(hours=hours)).strftime("%Y-%m-%d-%H")
        for file in self._folder.glob("*/server.log.*"):
            if file.name.removeprefix("server.log.") < oldest:
                file.unlink()


def main() -> int:
    """Collect once, or again and again; 1 if nothing could be read."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--selector", required=True, help="labels of the pods")
    parser.add_argument("--container", required=True)
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--first-hours", type=float, default=2, help="hours that are read of a new pod")
    parser.add_argument("--keep-hours", type=float, default=48, help="older files are removed")
    parser.add_argument("--every", type=float, help="seconds between two rounds; without it there is one")
    parser.add_argument("--api", help="address of the API, outside a cluster: that of kubectl proxy")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    collector = Collector(Api(given.api), given.namespace, given.container, given.folder, given.first_hours)
    while True:
        try:
            count, problems = collector.collect(given.selector)
        except (OSError, HTTPException) as error:
            count, problems = 0, [f"the API of Kubernetes does not answer: {error}"]
        sys.stderr.write("\n".join([f"{count} lines", *problems, ""]))
        collector.drop_older(given.keep_hours)
        if given.every is None:
            return 1 if problems and not count else 0
        time.sleep(given.every)


if __name__ == "__main__":
    sys.exit(main())
