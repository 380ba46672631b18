"""deploy/kubernetes/collect.py against an API like that of Kubernetes: no line is lost, none is there twice."""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[3]
SPEC = importlib.util.spec_from_file_location("collect", ROOT / "deploy" / "kubernetes" / "collect.py")
assert SPEC is not None
assert SPEC.loader is not None
collect = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(collect)

NOW = datetime.now(UTC)


class Cluster:
    """Pods with the lines of their containers: times relative to now, and texts."""

    def __init__(self) -> None:
        self.containers: dict[str, list[list[tuple[timedelta, str]]]] = {}

    def pods(self) -> dict[str, Any]:
        """Return the answer to a list of pods."""
        items = []
        for name, containers in self.containers.items():
            last = {"terminated": {"exitCode": 1}} if len(containers) > 1 else {}
            status = {"name": "kafka", "containerID": f"cri://{name}-{len(containers)}", "lastState": last}
            items.append({"metadata": {"name": name}, "status": {"containerStatuses": [status]}})
        return {"items": items}

    def log(self, pod: str, since: str, is_previous: bool) -> bytes:
        """Return the answer to a request for a log: whole seconds of `sinceTime` count, as there."""
        containers = self.containers[pod]
        start = datetime.fromisoformat(since)
        lines = [(NOW + delta, text) for delta, text in containers[-2 if is_previous else -1]]
        return "".join(
            f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond:06}000Z {text}\n" for at, text in lines if at >= start
        ).encode()


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def api(cluster: Cluster) -> Iterator[Any]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(url.query).items()}
            if url.path.endswith("/log"):
                pod = url.path.split("/")[-2]
                body = cluster.log(pod, query["sinceTime"], query.get("previous") == "true")
            else:
                assert query["labelSelector"] == "app=kafka"
                body = json.dumps(cluster.pods()).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield collect.Api(f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    server.server_close()


def texts(folder: Path, pod: str) -> list[str]:
    files = sorted((folder / pod).glob("server.log.*"))
    return "".join(file.read_text(encoding="utf-8") for file in files).splitlines()


def round_of(api: Any, folder: Path) -> tuple[int, list[str]]:
    made: tuple[int, list[str]] = collect.Collector(api, "kafka", "kafka", folder, 3).collect("app=kafka")
    return made


def test_each_line_is_there_once_however_often_it_is_collected(cluster: Cluster, api: Any, tmp_path: Path) -> None:
    lines = [(timedelta(minutes=-100 + n), f"line {n}") for n in range(90)]
    cluster.containers = {"kafka-0": [[]], "kafka-1": [[(timedelta(minutes=-1), "other")]]}
    for end in (0, 1, 1, 40, 41, 90):
        cluster.containers["kafka-0"][-1] = lines[:end]
        _, problems = round_of(api, tmp_path)
        assert problems == []
        assert texts(tmp_path, "kafka-0") == [text for _, text in lines[:end]]
    assert texts(tmp_path, "kafka-1") == ["other"]
    hours = {f"server.log.{NOW + at:%Y-%m-%d-%H}" for at, _ in lines}
    assert {file.name for file in (tmp_path / "kafka-0").iterdir()} == hours


def test_the_last_words_of_a_crashed_container_are_read(cluster: Cluster, api: Any, tmp_path: Path) -> None:
    first = [(timedelta(minutes=-9), "started"), (timedelta(minutes=-8), "working")]
    cluster.containers = {"kafka-0": [first[:]]}
    round_of(api, tmp_path)
    cluster.containers["kafka-0"][0].append((timedelta(minutes=-7), "fatal"))
    cluster.containers["kafka-0"].append([(timedelta(minutes=-6), "started again")])
    round_of(api, tmp_path)
    round_of(api, tmp_path)
    assert texts(tmp_path, "kafka-0") == ["started", "working", "fatal", "started again"]


def test_a_killed_round_leaves_no_line_twice(cluster: Cluster, api: Any, tmp_path: Path) -> None:
    cluster.containers = {"kafka-0": [[(timedelta(minutes=-3), "a")]]}
    round_of(api, tmp_path)
    state = (tmp_path / ".collected.json").read_bytes()
    cluster.containers["kafka-0"][0].append((timedelta(minutes=-2), "b"))
    round_of(api, tmp_path)
    (tmp_path / ".collected.json").write_bytes(state)  # as if killed before the state was saved
    round_of(api, tmp_path)
    assert texts(tmp_path, "kafka-0") == ["a", "b"]


def test_what_cannot_be_read_is_named(cluster: Cluster, api: Any, tmp_path: Path) -> None:
    assert round_of(api, tmp_path)[1] == ["no pod in namespace kafka has the labels app=kafka and a started kafka"]


def test_old_files_are_removed(cluster: Cluster, api: Any, tmp_path: Path) -> None:
    cluster.containers = {"kafka-0": [[(timedelta(hours=-2.5), "old"), (timedelta(minutes=-1), "new")]]}
    round_of(api, tmp_path)
    collect.Collector(api, "kafka", "kafka", tmp_path, 3).drop_older(1)
    assert texts(tmp_path, "kafka-0") == ["new"]


@given(st.datetimes(datetime(2011, 1, 1), datetime(2100, 1, 1)), st.integers(0, 9), st.integers(-12 * 60, 14 * 60))
def test_times_of_the_kubelet_are_read_to_the_nanosecond(moment: datetime, digits: int, offset: int) -> None:
    fraction = f"{moment.microsecond:06}000"[:digits]
    sign, minutes = "-" if offset < 0 else "+", abs(offset)
    zone = f"{sign}{minutes // 60:02}:{minutes % 60:02}" if offset else "Z"
    stamp = f"{moment:%Y-%m-%dT%H:%M:%S}{'.' if fraction else ''}{fraction}{zone}"
    seconds = (moment.replace(microsecond=0) - datetime(1970, 1, 1)) // timedelta(seconds=1) - offset * 60
    assert collect.nanoseconds(stamp) == seconds * 10**9 + int(fraction.ljust(9, "0") or 0)
