"""What a run says before its answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from highwater.pipelines.base.config import load_config
from highwater.pipelines.bronze.identity import Hints
from highwater.pipelines.bronze.log_source import how_of
from highwater.pipelines.bronze.neighbours import Identity
from highwater.pipelines.bronze.passes import profiles
from highwater.pipelines.bronze.profile import Profile
from highwater.pipelines.report.first_words import TEXTS_BYTES_MAX, describe_new_texts, describe_profiles, is_short

SECOND = 1_000_000


def profile(path: str, **changes: Any) -> Profile:
    values: dict[str, Any] = {
        "path": path,
        "sha256": path,
        "content_id": path,
        "size_bytes": 10,
        "content_bytes": 2_000_000,
        "kind": "server",
        "layout": "log4j",
        "line_count": 12,
        "record_count": 10,
        "first_us": SECOND,
        "last_us": 61 * SECOND,
        "problem": None,
        "hints": Hints(),
    }
    return Profile(**values | changes)


def owner(broker_id: int | None, version: str | None = "2.8.2") -> Identity:
    return Identity("c", broker_id, "content", version, "zookeeper", None)


def test_brokers_release_period_sources_and_what_is_not_read_come_first() -> None:
    files = [profile("1/server.log"), profile("2/server.log", last_us=3661 * SECOND, kind="controller")]
    owners = {"1/server.log": owner(1), "2/server.log": owner(2)}
    assert list(describe_profiles(files, owners, [("3/server.log.gz", "is cut")])) == [
        "brokers 1, 2, Kafka 2.8.2, 1970-01-01 00:00:01 to 01:01:01 UTC",
        "2 logs (1 server, 1 controller): 20 records, 4.0 MB",
        "not read: server.log.gz",
    ]


@pytest.mark.parametrize("bound", ["first_us", "last_us"])
def test_what_the_files_do_not_show_is_named_unknown(bound: str) -> None:
    only = profile("server.log", **{bound: None})
    first, _ = describe_profiles([only], {"server.log": owner(None, None)}, [])
    assert first == "broker of unknown id, Kafka of unknown release"


def test_many_files_that_are_not_read_are_counted() -> None:
    unread = [(f"{place}/server.log", "is cut") for place in range(5)]
    assert list(describe_profiles([], {}, unread)) == ["not read: server.log, server.log, server.log and 2 more"]


def test_errors_are_read_from_short_logs_before_anything_is_stored(tmp_path: Path) -> None:
    for broker_id in (1, 2):
        lines = [
            f"[2026-11-20 15:33:{second:02},101] {level} [ReplicaManager broker={broker_id}] Error at {second} "
            "(kafka.server.ReplicaManager)\n"
            for second, level in enumerate(["INFO", "ERROR", "WARN", "ERROR"])
        ]
        (tmp_path / f"server.log.{broker_id}").write_text("".join(lines))
    how = how_of(load_config().ingest)
    files = [
        item
        for path in sorted(map(str, tmp_path.iterdir()))
        for item in profiles(path, frozenset(), {}, how)
        if isinstance(item, Profile)
    ]
    owners = {item.path: owner(int(item.path[-1])) for item in files}
    said = ["ERROR 4x from 2026-11-20 15:33:01, brokers 1, 2: [ReplicaManager broker=1] Error at 1"]
    assert list(describe_new_texts(files, owners, how)) == said
    # The run reads again a file that is gone, and reports it.
    Path(files[0].path).unlink()
    assert list(describe_new_texts(files, owners, how)) == []


def test_request_logs_have_no_errors_to_read() -> None:
    long = TEXTS_BYTES_MAX + 1
    assert is_short([profile("1/kafka-request.log", content_bytes=long, kind="kafka-request")])
    assert not is_short([profile("1/server.log", content_bytes=long)])
