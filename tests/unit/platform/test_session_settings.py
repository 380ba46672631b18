"""Which settings a session makes, where it runs, and what it leaves alone."""

from pathlib import Path

import pytest

from highwater.pipelines.base.config import SessionConfig, load_config
from highwater.pipelines.spark.session_settings import (
    EVERYWHERE,
    add_delta,
    build_settings,
    local_cores,
    read_spark_defaults,
)

CLUSTERS = ("spark://host:7077", "yarn", "k8s://https://host:443", "local-cluster[2,1,1024]")
GIB = 1 << 30


def _session(**changed: object) -> SessionConfig:
    return load_config(None, {f"session.{key}": value for key, value in changed.items()}).session


@pytest.mark.parametrize("master", CLUSTERS)
def test_nothing_that_suits_a_laptop_reaches_a_cluster(master: str) -> None:
    assert local_cores(master) is None
    assert build_settings(_session(), master, text_bytes=0) == EVERYWHERE
    laptop = build_settings(_session(), "local[4]", text_bytes=0)
    for name in ("ui.enabled", "sql.adaptive.enabled", "sql.shuffle.partitions", "python.daemon.module"):
        assert f"spark.{name}" in laptop
        assert f"spark.{name}" not in EVERYWHERE


def test_partitions_of_one_process_follow_its_cores() -> None:
    assert build_settings(_session(), "local[4]", 1000 * GIB)["spark.sql.shuffle.partitions"] == "4"


@pytest.mark.parametrize(
    ("text_bytes", "partitions"), [(0, None), (25 * GIB, None), (42 * GIB, "336"), (1024 * GIB, "8192")]
)
def test_partitions_of_a_cluster_are_sparks_own_until_there_is_more_text(text_bytes: int, partitions: str) -> None:
    assert build_settings(_session(), "yarn", text_bytes).get("spark.sql.shuffle.partitions") == partitions


@pytest.mark.parametrize("master", ["yarn", "local[4]"])
def test_partitions_that_are_configured_are_those(master: str) -> None:
    configured = build_settings(_session(shuffle_partitions=7), master, 1000 * GIB)
    assert configured["spark.sql.shuffle.partitions"] == "7"


def test_delta_is_added_to_the_extensions_that_are_there() -> None:
    delta = add_delta(None)
    assert add_delta("org.example.Ours") == f"org.example.Ours,{delta}"
    assert add_delta(f"{delta},org.example.Ours") == f"{delta},org.example.Ours"


def test_defaults_are_read_as_spark_reads_them(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    assert read_spark_defaults(str(tmp_path), {}) == {}
    text = "# ours\nspark.driver.memory 8g\nspark.jars=/a.jar,\\\n  /b.jar\nspark.x:  1 2  \nother.key 1\n"
    (conf / "spark-defaults.conf").write_text(text)
    expected = {"spark.driver.memory": "8g", "spark.jars": "/a.jar,/b.jar", "spark.x": "1 2"}
    assert read_spark_defaults(str(tmp_path), {}) == expected
    assert read_spark_defaults("/nowhere", {"SPARK_CONF_DIR": str(conf)}) == expected
