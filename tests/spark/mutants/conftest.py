"""All variants of all slices, judged by one audit."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from highwater.pipelines.base.config import load_config
from highwater.pipelines.lake.lake import Lake
from tests.spark.mutants.judged import MUTANTS, RESPELT, RUNS, UNDAMAGED
from tests.spark.mutants.slices import SLICES, Records, available
from tests.spark.mutants.variants import Audited, audited


@pytest.fixture(scope="session")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """What the rules find in the slices as they are, in the mutants, and where lines are missing."""
    if not available():
        pytest.skip("the large corpora are not beside this checkout")
    variants = undamaged()
    variants |= {mutant.variant: mutant.change(SLICES[mutant.part].read()) for mutant in MUTANTS}
    variants |= {one.name: one.apply() for one in RESPELT}
    variants |= {loss.name: loss.apply() for loss in RUNS if not loss.long}
    return audited(Lake(spark, tmp_path_factory.mktemp("mutants")), variants, load_config())


@pytest.fixture(scope="session")
def more_losses(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """What the rules find where more lines are missing."""
    if not available():
        pytest.skip("the large corpora are not beside this checkout")
    variants = undamaged() | {loss.name: loss.apply() for loss in RUNS if loss.long}
    return audited(Lake(spark, tmp_path_factory.mktemp("losses")), variants, load_config())


def undamaged() -> dict[str, Records]:
    """The slices as they are."""
    return {UNDAMAGED + part: cut.read() for part, cut in SLICES.items()}
