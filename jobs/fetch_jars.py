"""Fetch Delta's jars once, so that sessions start without asking Maven: ``python -m jobs.fetch_jars``.

Two ways, the second if the first fails: Ivy, which is part of Spark and needs nothing but the network (or a warm
``~/.ivy2``), and `mvn` where it is installed, which knows the mirrors and proxies of ``settings.xml``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pyspark

from pipelines.errors import EnvironmentProblem, HighwaterError
from pipelines.jars import JARS_VARIABLE, delta_jars, delta_package, jars_dir

#: What Delta depends on and Spark already brings, in the versions that Spark was tested with.
SHIPPED_WITH_SPARK = (
    "com.fasterxml.jackson.core",
    "com.fasterxml.jackson.datatype",
    "com.google.code.findbugs",
    "org.apache.hadoop",
    "org.apache.logging.log4j",
    "org.apache.parquet",
    "org.roaringbitmap",
    "org.slf4j",
)
#: The groups of the jars to keep.
WANTED_GROUPS = ("io.delta", "io.unitycatalog")
TIMEOUT_S = 600

_RESOLVE = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.jars.packages", sys.argv[1]).config("spark.jars.excludes", sys.argv[2])
spark = builder.getOrCreate()
print(spark.sparkContext.getConf().get("spark.jars"))
"""

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>highwater</groupId><artifactId>jars</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
  </dependency></dependencies>
</project>
"""


def fetch() -> Path:
    """Put the jars where sessions look for them; nothing is done if they are there.

    Returns:
        Their folder.

    Raises:
        EnvironmentProblem: neither way reached Maven; what each said is on stderr.
    """
    target = jars_dir()
    if delta_jars():
        return target
    ways: list[Callable[[Path], list[Path]]] = [_by_ivy]
    if shutil.which("mvn"):
        ways.append(_by_maven)
    for way in ways:
        with tempfile.TemporaryDirectory(prefix="highwater-jars-") as scratch:
            try:
                _install(way(Path(scratch)), target)
            except (OSError, subprocess.SubprocessError) as error:
                sys.stderr.write(f"{way.__name__}: {error}\n{getattr(error, 'stderr', None) or ''}")
        if delta_jars():
            return target
    raise EnvironmentProblem(
        f"{delta_package()} could not be fetched from Maven",
        f"check the network and proxy, or set {JARS_VARIABLE} to a folder that has the jars",
    )


def _by_ivy(scratch: Path) -> list[Path]:
    """The jars that Spark's own resolver finds."""
    excludes = ",".join(f"{group}:*" for group in SHIPPED_WITH_SPARK)
    output = _output([sys.executable, "-c", _RESOLVE, delta_package(), excludes], scratch)
    jars = [Path(url.removeprefix("file://")) for url in output.split()[-1].split(",")]
    return [jar for jar in jars if jar.name.startswith(WANTED_GROUPS)]


def _by_maven(scratch: Path) -> list[Path]:
    """The jars that `mvn` finds."""
    group, artifact, version = delta_package().split(":")
    pom = scratch / "pom.xml"
    pom.write_text(_POM.format(group=group, artifact=artifact, version=version), encoding="utf-8")
    options = [f"-DoutputDirectory={scratch}", f"-DincludeGroupIds={','.join(WANTED_GROUPS)}"]
    _output(["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", *options], scratch)
    return sorted(scratch.glob("*.jar"))


def _output(command: list[str], folder: Path) -> str:
    # The checkout's own Spark, whatever SPARK_HOME says: the jars have to fit that one.
    environment = os.environ | {"SPARK_HOME": str(Path(pyspark.__file__).parent)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    return done.stdout


def _install(jars: Iterable[Path], target: Path) -> None:
    """Copy, each file at once: an interrupted copy must not look like a jar."""
    target.mkdir(parents=True, exist_ok=True)
    for old in target.glob("*.jar"):
        old.unlink()
    for jar in jars:
        partial = target / f"{jar.name}.partial"
        shutil.copyfile(jar, partial)
        partial.replace(target / jar.name)


def main() -> None:
    """Entry point for `make setup`."""
    try:
        sys.stdout.write(f"Delta's jars are in {fetch()}\n")
    except HighwaterError as error:
        sys.exit(f"highwater: {error}")


if __name__ == "__main__":
    main()
