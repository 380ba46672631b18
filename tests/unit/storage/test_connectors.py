"""What Spark needs for a lake in a store, told before it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from highwater.pipelines.base.errors import EnvironmentProblem
from highwater.pipelines.base.jars import JARS_VARIABLE
from highwater.pipelines.storage.connectors import find_connector_jars, store_settings
from highwater.pipelines.storage.place import Uri

S3 = Uri("s3a", "bucket", "lake")
VARIABLES = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(JARS_VARIABLE, str(tmp_path))


def test_a_path_needs_nothing() -> None:
    assert find_connector_jars(Path("lake"), {}) == ()
    assert find_connector_jars(None, {}) == ()
    assert store_settings(Path("lake")) == {}


@pytest.mark.parametrize(("place", "remedy"), [(S3, "doctor --fetch"), (Uri("gs", "bucket"), "gcs-connector")])
def test_jars_that_are_not_there(place: Uri, remedy: str) -> None:
    with pytest.raises(EnvironmentProblem, match=remedy):
        find_connector_jars(place, {})


@pytest.mark.parametrize("name", ["hadoop-aws-3.5.0.jar", "org.apache.hadoop_hadoop-aws-3.5.0.jar"])
def test_jars_that_were_fetched(name: str, tmp_path: Path) -> None:
    (tmp_path / "s3").mkdir()
    for jar in (name, "s3-2.35.4.jar"):
        (tmp_path / "s3" / jar).write_bytes(b"")
    assert {jar.name for jar in find_connector_jars(S3, {})} == {name, "s3-2.35.4.jar"}


def test_jars_that_the_configuration_names() -> None:
    named = {"spark.jars.packages": "com.google.cloud.bigdataoss:gcs-connector:hadoop3-2.2.26"}
    assert find_connector_jars(Uri("gs", "bucket"), named) == ()


def test_s3a_is_told_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert store_settings(S3) == {}
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert store_settings(S3) == {"spark.hadoop.fs.s3a.endpoint.region": "eu-west-1"}
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    assert store_settings(S3) == {
        "spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:9000",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.endpoint.region": "eu-west-1",
    }
