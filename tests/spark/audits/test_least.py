"""The least excerpt of each kind shows it, in an audit of the log alone: each is a cluster of one lake."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set

import pytest

from tests.bench.least import LEAST, write_least
from tests.spark.audits.conftest import Verb


@pytest.fixture(scope="module")
def kinds(verb: Verb, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Set[str]]:
    """Return the kinds of the incidents of each excerpt."""
    folder = tmp_path_factory.mktemp("least")
    lines = ["[ingest.clusters]"]
    for name in LEAST:
        write_least(name, folder / "logs" / name)
        lines.append(f'"{folder}/logs/{name}" = "{name}"')
    conf = folder / "clusters.toml"
    conf.write_text("\n".join(lines), encoding="utf-8")
    ended = verb(folder, "audit", folder / "logs", "--conf", conf)
    found: dict[str, set[str]] = defaultdict(set)
    for row in ended.report["incidents"]:
        found[row["cluster_id"]].add(row["kind"])
    return found


@pytest.mark.parametrize("name", sorted(LEAST))
def test_the_least_excerpt_of_a_kind_shows_it(name: str, kinds: Mapping[str, Set[str]]) -> None:
    assert name in kinds[name]
