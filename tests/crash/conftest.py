"""One undisturbed lake for all tests that compare with one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.crash.commands import Ended, highwater
from tests.crash.inputs import small_corpus

VERDICTS = (0, 1, 3)


@dataclass(frozen=True)
class Undisturbed:
    """The small corpus, audited once into the folder's lake."""

    folder: Path
    corpus: Path
    ended: Ended


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_corpus(tmp_path_factory.mktemp("input") / "corpus")


@pytest.fixture(scope="session")
def undisturbed(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    ended = highwater(folder, "audit", corpus)
    assert ended.code in VERDICTS, ended.err
    return Undisturbed(folder, corpus, ended)
