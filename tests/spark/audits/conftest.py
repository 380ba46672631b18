"""Whole audits, in the session of the ring: each lake is audited once, and shared by all that only read it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from highwater.pipelines.lake.lake import Lake
from tests.spark.audits.corpora import ALL, LOSSES, available
from tests.verbs import CORPORA, SLICE, Ended, in_process, in_session

Verb = Callable[..., Ended]


@pytest.fixture(scope="session")
def verb(spark: SparkSession) -> Verb:
    """A verb in the ring's session: a folder, then what stands on the command line."""
    return partial(in_session, spark)


@pytest.fixture(scope="session")
def audited_slice(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """The bundled slice in one run over everything, as a user has it. To be read only, as all that is shared."""
    folder = tmp_path_factory.mktemp("slice")
    return folder, in_process(folder, "audit", SLICE)


@pytest.fixture(scope="session")
def slice_lake(spark: SparkSession, audited_slice: tuple[Path, Ended]) -> Lake:
    """Its lake."""
    return Lake(spark, audited_slice[0] / "lake")


@pytest.fixture(scope="session", params=[pytest.param(LOSSES, id="losses"), ALL])
def corpora(verb: Verb, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """Several clusters in one lake, audited once."""
    if not available():
        pytest.skip("the large corpora are not beside this checkout")
    folder = tmp_path_factory.mktemp("corpora")
    ended = verb(folder, "audit", *(CORPORA / name for name in request.param))
    assert ended.code == 1, ended.err
    return folder, ended
