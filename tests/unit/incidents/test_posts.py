"""Incidents from excerpts in the manner of bug reports: what has to be in the main one, and what must not be said."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from highwater.pipelines.incidents.incident import LoggedIncident
from highwater.pipelines.incidents.kinds import KINDS
from highwater.pipelines.incidents.story import incidents_of
from tests.incident_texts import facts_of_lines
from tests.reading import read_folder


class Post(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An excerpt, and what its incidents have to say."""

    kinds: tuple[str, ...]  #: of the incidents, the main one first
    said: tuple[str, ...]  #: in the sentence or the advice of the main incident
    logs: Mapping[str, str]  #: text by name of the file
    unsaid: tuple[str, ...] = ()  #: in no incident


_DATA = Path(__file__).parents[2] / "data" / "incidents" / "posts.toml"
POSTS = msgspec.toml.decode(_DATA.read_bytes(), type=dict[str, Post])


def _incidents(folder: Path, post: Post) -> list[LoggedIncident]:
    for name, text in post.logs.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return incidents_of(facts_of_lines(read_folder(folder)), KINDS)


@pytest.mark.parametrize("name", POSTS)
def test_each_post_has_its_incidents(tmp_path: Path, name: str) -> None:
    post = POSTS[name]
    incidents = _incidents(tmp_path, post)
    assert sorted(incident.kind for incident in incidents) == sorted(post.kinds)
    (main,) = [incident for incident in incidents if incident.kind == post.kinds[0]]
    text = f"{main.sentence} {main.advice}"
    assert [words for words in post.said if words not in text] == []
    every = " ".join(f"{incident.sentence} {incident.advice}" for incident in incidents)
    assert [words for words in post.unsaid if words in every] == []


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("a denial of ClusterAction is between brokers", "fetch_errors"),
        ("compaction stays stopped until the next start", "coordinator_slow"),
        ("a slow controller explains sessions that time out", "logs_end_early"),
        ("a thread that dies of memory", "fetcher_died"),
    ],
)
def test_posts_have_one_cause(tmp_path: Path, name: str, effect: str) -> None:
    incidents = {incident.kind: incident for incident in _incidents(tmp_path, POSTS[name])}
    (cause,) = [incident for kind, incident in incidents.items() if kind != effect]
    assert incidents[effect].caused_by == cause.incident_id
