"""What all tests on a cluster share: a small corpus, and what a run within one process makes of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.standalone import Done, command, standalone
from tests.crash.inputs import small_corpus

VERDICTS = (0, 1, 3)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_corpus(tmp_path_factory.mktemp("input") / "corpus")


@pytest.fixture(scope="session")
def local(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """Folder and end of an audit in one process."""
    folder = tmp_path_factory.mktemp("local")
    done = command(folder, "audit", corpus, "--master", "local[2]", python=sys.executable)
    assert done.code in VERDICTS, done.err
    return folder, done


@pytest.fixture(scope="session")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("standalone")) as url:
        yield url
