"""Jars and settings that Spark's JVM needs to reach a store.

Of the AWS SDK only the modules that S3A uses are fetched (14 MB), never its bundle of everything (686 MB).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from highwater.pipelines.base.errors import EnvironmentProblem
from highwater.pipelines.base.jars import JARS_VARIABLE, find_jars_dir
from highwater.pipelines.storage.place import HADOOP_SCHEME, Place, Uri

#: The jar of each scheme's file system, by the beginning of its name. Spark itself brings Hadoop's own ones.
_CONNECTORS = {"s3a": "hadoop-aws", "gs": "gcs-connector", "abfss": "hadoop-azure"}
_JAR_SETTINGS = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")


def locate_s3_jars() -> Path:
    """Return the folder of the jars of S3's file system; it may not exist."""
    return find_jars_dir() / "s3"


def find_s3_jars() -> tuple[Path, ...]:
    """Return the jars of S3's file system; empty if they are missing."""
    jars = tuple(sorted(locate_s3_jars().glob("*.jar")))
    return jars if any(_CONNECTORS["s3a"] in jar.name for jar in jars) else ()


def find_connector_jars(place: Place | None, spark: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the jars that a session needs for a lake at this location.

    Args:
        spark: ``[session.spark]`` of the configuration, which may name the jars itself.

    Raises:
        EnvironmentProblem: the jars are missing.
    """
    if not isinstance(place, Uri) or place.scheme == HADOOP_SCHEME:
        return ()
    connector = _CONNECTORS[place.scheme]
    if any(connector in spark.get(name, "") for name in _JAR_SETTINGS):
        return ()
    if place.scheme == "s3a" and (jars := find_s3_jars()):
        return jars
    if place.scheme == "s3a":
        fetch = f"run `highwater doctor --fetch --lake {place}` once, on line"
        remedy = f"{fetch}, or set {JARS_VARIABLE} to a folder that has them in s3/"
    else:
        remedy = (
            f'name it in "spark.jars.packages" of [session.spark], with the others that the session needs ({connector})'
        )
    raise EnvironmentProblem(f"Spark has no jars for {place.scheme}:// ({connector})", remedy)


def locate_hadoop_conf(place: Place | None) -> str | None:
    """Return the folder of Hadoop's configuration for the JVM; None if ``HADOOP_CONF_DIR`` is set."""
    if not isinstance(place, Uri) or place.scheme != HADOOP_SCHEME or "HADOOP_CONF_DIR" in os.environ:
        return None
    home = os.environ.get("HADOOP_HOME")
    return str(Path(home, "etc", "hadoop")) if home else None


def store_settings(place: Place | None) -> dict[str, str]:
    """Return Spark settings from environment variables that S3A does not read."""
    if not isinstance(place, Uri) or place.scheme != "s3a":
        return {}
    from highwater.pipelines.storage.objects import find_endpoint

    settings = {}
    url = find_endpoint()
    if url:
        # Servers that are not AWS have no host name per bucket.
        settings = {"spark.hadoop.fs.s3a.endpoint": url, "spark.hadoop.fs.s3a.path.style.access": "true"}
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or ("us-east-1" if url else None)
    return settings | ({"spark.hadoop.fs.s3a.endpoint.region": region} if region else {})
