"""Clusters and zones by folder: what is said of a file, and what contradicts it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.bronze.folders import NOTHING_SAID, ClusterFile, Folder, Folders, folders_of, require_one_name
from highwater.pipelines.bronze.identity import Hints
from highwater.pipelines.bronze.neighbours import Identity
from highwater.pipelines.bronze.profile import Profile
from highwater.pipelines.bronze.register import file_row, identify

EAST, WEST = Folder("east"), Folder("west", "America/Los_Angeles")
A, B = "W-CQybfSRP-OafW0EWRB0Q", "StFVvc9XQEetSc4jeax1NA"


@pytest.mark.parametrize(
    ("said", "path", "expected"),
    [
        ({"/logs/east": EAST}, "/logs/east/b1/server.log", EAST),
        ({"/logs/east": EAST}, "/logs/eastern/b1/server.log", NOTHING_SAID),
        ({"/logs/east": EAST}, "/logs/east", NOTHING_SAID),
        # The innermost folder counts, whichever is written as a pattern.
        ({"/logs/*": EAST, "/logs/a/b": WEST}, "/logs/a/b/c/server.log", WEST),
        ({"/logs/a": EAST, "/logs/*/b": WEST}, "/logs/a/b/server.log", WEST),
        ({"/logs/*": EAST, "/logs/west": WEST}, "/logs/west/server.log", WEST),
        # A pattern is of one part.
        ({"/*/east": EAST}, "/logs/eu/east/server.log", NOTHING_SAID),
        ({"/logs/east.tgz": EAST}, "/logs/east.tgz!/b1/server.log", EAST),
        ({"s3://bucket/logs/w*": WEST}, "s3a://bucket/logs/west/b1/server.log", WEST),
        ({"file:///logs/east": EAST}, "/logs/east/server.log", EAST),
        ({}, "/logs/east/server.log", NOTHING_SAID),
    ],
)
def test_what_is_said_of_a_file(said: dict[str, Folder], path: str, expected: Folder) -> None:
    assert folders_of(said).of(path) == expected


def test_a_relative_folder_is_one_of_the_working_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert folders_of({"east": EAST}).of(f"{tmp_path}/east/server.log") == EAST


def test_a_store_that_is_not_supported_is_refused() -> None:
    with pytest.raises(InputError, match="oss is not supported"):
        folders_of({"oss://logs/east": EAST})


# ------------------------------------------------------------------ whose a file is


def profile(
    path: str, cluster: str | None = None, broker: int | None = 1, port: int = 0, listens: bool = False, **changes: Any
) -> Profile:
    hints = Hints(
        brokers=Counter({broker: 5} if broker is not None else {}),
        clusters=Counter({cluster: 1} if cluster else {}),
        locals=Counter({f"10.0.0.1:{port}": 3} if port else {}),
        listeners={f"kafka-1:{port}"} if listens else set(),
    )
    values: dict[str, Any] = {"first_us": 0, "last_us": 3_600_000_000, "kind": "server"} | changes
    return Profile(
        path,
        sha256=path,
        content_id=path,
        size_bytes=1,
        content_bytes=1,
        layout="kafka",
        line_count=1,
        record_count=1,
        problem=None,
        hints=hints,
        **values,
    )


def identities(
    said: dict[str, Folder], *files: Profile, register: list[dict[str, Any]] | None = None
) -> dict[str, Identity]:
    return identify(files, [], register or [], folders_of(said))[0]


def stored(item: Profile, identity: Identity) -> dict[str, Any]:
    """The row that an earlier run left."""
    return file_row(item, identity, "r") | {"first_time": 0, "last_time": 3_600_000_000}


def clusters(found: dict[str, Identity]) -> dict[str, tuple[str, str | None]]:
    return {path: (identity.cluster_id, identity.logged_cluster_id) for path, identity in found.items()}


def test_a_folder_gives_its_cluster_the_name_whatever_lines_tell() -> None:
    files = [
        profile("/l/east/1/server.log", A),
        profile("/l/east/2/server.log", broker=2),
        profile("/l/x/server.log", B),
    ]
    assert clusters(identities({"/l/east": EAST}, *files)) == {
        "/l/east/1/server.log": ("east", A),
        "/l/east/2/server.log": ("east", None),
        "/l/x/server.log": (B, B),
    }


def test_a_name_is_of_its_folder_and_of_no_other() -> None:
    files = [profile("/l/east/server.log"), profile("/l/other/server.log")]
    assert clusters(identities({"/l/east": EAST}, *files))["/l/other/server.log"] == ("unknown", None)


def test_a_name_holds_from_the_first_hour_on() -> None:
    """Brokers log the cluster's id at their start only: hours may pass before a line tells it."""
    first = profile("/l/east/1/server.log.1")
    register = [stored(first, identities({"/l/east": EAST}, first)[first.path])]
    later = profile("/l/east/1/server.log", A)
    assert clusters(identities({"/l/east": EAST}, later, register=register)) == {later.path: ("east", A)}


@pytest.mark.parametrize(
    ("said", "files", "words"),
    [
        (
            {"/l/e": EAST, "/l/f": EAST},
            [profile("/l/e/server.log", A), profile("/l/f/server.log", B)],
            ["/l/e/server.log", "/l/f/server.log", A, B, "are named east"],
        ),
        (
            {"/l/e": EAST, "/l/w": WEST},
            [profile("/l/e/server.log", A), profile("/l/w/server.log", A, 2)],
            ["/l/e/server.log", "/l/w/server.log", A, "east", "west"],
        ),
        # One folder of the cluster has a name, another has none.
        (
            {"/l/e": EAST},
            [profile("/l/e/server.log", A), profile("/l/w/server.log", A, 2)],
            ["east", A, "/l/w/server.log"],
        ),
    ],
)
def test_two_files_that_contradict_each_other_are_named(
    said: dict[str, Folder], files: list[Profile], words: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        identities(said, *files)
    assert all(word in str(caught.value) for word in words)


def test_a_cluster_is_not_renamed_within_a_lake() -> None:
    before = profile("/l/e/server.log.1", A)
    register = [stored(before, identities({}, before)[before.path])]
    with pytest.raises(InputError, match=r"/l/e/server.log.1: is of cluster W-CQ.* names its folder east"):
        identities({"/l/e": EAST}, profile("/l/e/server.log"), register=register)


# ---------------------------------------------------------- brokers of one id, and no cluster


def test_brokers_of_one_id_that_nothing_tells_apart_are_not_made_one() -> None:
    files = [profile("/l/a/1/server.log"), profile("/l/b/1/server.log")]
    with pytest.raises(InputError) as caught:
        identities({}, *files)
    words = ["/l/a/1/server.log", "/l/b/1/server.log", "broker 1", "ingest.clusters", "--cluster"]
    assert all(word in str(caught.value) for word in words)
    assert clusters(identities({"/l/a": EAST, "/l/b": WEST}, *files)) == {
        "/l/a/1/server.log": ("east", None),
        "/l/b/1/server.log": ("west", None),
    }
    assert identify(files, [], [], cluster="east")[0]["/l/a/1/server.log"].cluster_id == "east"


def test_brokers_that_an_earlier_run_read_are_looked_at_too() -> None:
    before = profile("/l/a/1/server.log")
    register = [stored(before, identities({}, before)[before.path])]
    with pytest.raises(InputError, match="no line shows their clusters"):
        identities({}, profile("/l/b/1/server.log"), register=register)


def problems(*files: Profile) -> list[tuple[str, str]]:
    return identify(files, [], [])[1]


HOUR_US = 3_600_000_000


@pytest.mark.parametrize(
    ("other", "is_said"),
    [
        # Its log of the next hour, perhaps; of the same address it is certain.
        (profile("/l/b/1/server.log", first_us=HOUR_US, last_us=2 * HOUR_US), True),
        (profile("/l/b/1/server.log", first_us=HOUR_US, last_us=2 * HOUR_US, port=9092), False),
        (profile("/l/b/1/controller.log", kind="controller"), True),
        (profile("/l/b/1/server.log", broker=2), False),
        (profile("/l/a/1/server.log.1"), False),
        # A copy.
        (profile("/l/b/1/server.log", port=9092), False),
    ],
)
def test_what_may_well_be_one_broker(other: Profile, is_said: bool) -> None:
    here = profile("/l/a/1/server.log", port=9092)
    assert {identity.cluster_id for identity in identities({}, here, other).values()} == {"unknown"}
    told = problems(here, other)
    assert bool(told) == is_said
    assert all("same broker 1 as" in text and "ingest.clusters" in text for _, text in told)


def test_other_addresses_are_of_another_broker_whenever_it_wrote() -> None:
    later = profile("/l/b/1/server.log", port=9093, first_us=HOUR_US, last_us=2 * HOUR_US)
    with pytest.raises(InputError, match="another address"):
        identities({}, profile("/l/a/1/server.log", port=9092), later)
    # Where a broker says it listens and where connections were made to are names and numbers of the same.
    assert problems(profile("/l/a/1/server.log", port=0, listens=True), replace(later, path="/l/b/1/x.log"))


def test_the_checks_ask_for_each_file_once() -> None:
    named = [ClusterFile(f"/l/e/{number}/server.log", "east", A) for number in range(3)]
    require_one_name(Folders(), [*named, ClusterFile("/l/x", B, B), ClusterFile("/l/y", "unknown", None)])
