"""Write ``conf/jars.lock`` anew, after another release of Delta or Hadoop: ``python -m tests.bench.resolve_jars``.

Jars and what they depend on are resolved in two ways, the second if the first fails: Ivy, which is part of Spark and
needs nothing but the network (or a warm ``~/.ivy2``), and `mvn` where it is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pyspark

from highwater.jobs.fetch_jars import DELTA, S3
from highwater.pipelines.base.errors import EnvironmentProblem
from highwater.pipelines.base.jars import JARS_VARIABLE, find_delta_jars, find_delta_package, find_jars_dir
from highwater.pipelines.storage.connectors import find_s3_jars, locate_s3_jars

#: What jars depend on and Spark already brings, in the versions that Spark was tested with.
SHIPPED_WITH_SPARK = (
    "com.fasterxml.jackson.core",
    "com.fasterxml.jackson.datatype",
    "com.google.code.findbugs",
    "commons-codec",
    "commons-logging",
    "io.netty",
    "org.apache.httpcomponents",
    "org.apache.logging.log4j",
    "org.apache.parquet",
    "org.roaringbitmap",
    "org.slf4j",
)


class Jars(NamedTuple):
    """What is fetched together."""

    packages: tuple[str, ...]  #: Maven coordinates
    groups: tuple[str, ...]  #: of the jars to keep
    excludes: tuple[str, ...]  #: coordinates that are not fetched, beside what Spark brings
    folder: Path  #: where sessions look for them
    are_there: Callable[[], bool]  #: whether they are in it


def jars_of_delta() -> Jars:
    """Delta's."""
    groups = ("io.delta", "io.unitycatalog")
    return Jars(
        (find_delta_package(),), groups, ("org.apache.hadoop:*",), find_jars_dir(), lambda: bool(find_delta_jars())
    )


def jars_of_s3() -> Jars:
    """Those of S3A, with the modules of the AWS SDK that it uses: its bundle of everything has 686 MB."""
    sdk = [f"software.amazon.awssdk:{module}:{AWS_SDK}" for module in AWS_SDK_MODULES]
    groups = (
        "org.apache.hadoop",
        "org.reactivestreams",
        "org.wildfly.openssl",
        "software.amazon.awssdk",
        "software.amazon.eventstream",
        "software.amazon.s3.analyticsaccelerator",
    )
    packages = (f"org.apache.hadoop:hadoop-aws:{hadoop_version()}", *sdk)
    return Jars(packages, groups, ("software.amazon.awssdk:bundle",), locate_s3_jars(), lambda: bool(find_s3_jars()))


def hadoop_version() -> str:
    """The Hadoop that Spark was built with."""
    (client,) = Path(pyspark.__file__).parent.glob("jars/hadoop-client-api-*.jar")
    return client.stem.removeprefix("hadoop-client-api-")


#: The release that hadoop-aws 3.5.0 was built with, and what of it S3A calls.
AWS_SDK = "2.35.4"
AWS_SDK_MODULES = ("s3", "s3-transfer-manager", "sts", "apache-client", "netty-nio-client")
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
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
    "<exclusions>{exclusions}</exclusions></dependency>"
)
_EXCLUSION = "<exclusion><groupId>{}</groupId><artifactId>{}</artifactId></exclusion>"


def fetch(jars: Jars) -> Path:
    """Put the jars where sessions look for them; nothing is done if they are there.

    Returns:
        Their folder.

    Raises:
        EnvironmentProblem: neither way reached Maven; what each said is on stderr.
    """
    if jars.are_there():
        return jars.folder
    ways: list[Callable[[Path, Jars], list[Path]]] = [_by_ivy]
    if shutil.which("mvn"):
        ways.append(_by_maven)
    for way in ways:
        with tempfile.TemporaryDirectory(prefix="highwater-jars-") as scratch:
            try:
                _install(way(Path(scratch), jars), jars.folder)
            except (OSError, subprocess.SubprocessError) as error:
                sys.stderr.write(f"{way.__name__}: {error}\n{getattr(error, 'stderr', None) or ''}")
        if jars.are_there():
            return jars.folder
    raise EnvironmentProblem(
        f"{jars.packages[0]} could not be fetched from Maven",
        f"check the network and proxy, or set {JARS_VARIABLE} to a folder that has the jars",
    )


def _by_ivy(scratch: Path, jars: Jars) -> list[Path]:
    """The jars that Spark's own resolver finds."""
    excludes = ",".join((*(f"{group}:*" for group in SHIPPED_WITH_SPARK), *jars.excludes))
    output = _output([sys.executable, "-c", _RESOLVE, ",".join(jars.packages), excludes], scratch)
    fetched = [Path(url.removeprefix("file://")) for url in output.split()[-1].split(",")]
    return [jar for jar in fetched if jar.name.startswith(jars.groups)]


def _by_maven(scratch: Path, jars: Jars) -> list[Path]:
    """The jars that `mvn` finds."""
    exclusions = "".join(_EXCLUSION.format(*exclude.split(":")) for exclude in jars.excludes)
    dependencies = (_DEPENDENCY.format(*package.split(":"), exclusions=exclusions) for package in jars.packages)
    pom = scratch / "pom.xml"
    pom.write_text(_POM.format(dependencies="".join(dependencies)), encoding="utf-8")
    options = [f"-DoutputDirectory={scratch}", f"-DincludeGroupIds={','.join(jars.groups)}"]
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


def locked(jars: Jars, folder: str) -> list[str]:
    """Lines of the lock."""
    lines = []
    for jar in sorted(jars.folder.glob("*.jar")):
        group = next(group for group in sorted(jars.groups, key=len, reverse=True) if jar.name.startswith(f"{group}_"))
        artifact, version = re.fullmatch(r"(.+?)-(\d[\w.]*)", jar.stem.removeprefix(f"{group}_")).groups()
        content = jar.read_bytes()
        lines.append(f"{folder} {group}:{artifact}:{version} {len(content)} {sha256(content).hexdigest()}")
    return lines


def _has_jars(folder: Path) -> bool:
    return any(folder.glob("*.jar"))


def main() -> None:
    """Resolve both sets and write the lock."""
    with tempfile.TemporaryDirectory(prefix="highwater-lock-") as scratch:
        lines = []
        for jars, folder in ((jars_of_delta(), DELTA), (jars_of_s3(), S3)):
            target = Path(scratch, folder)
            fresh = jars._replace(folder=target, are_there=partial(_has_jars, target))
            lines += locked(fresh._replace(folder=fetch(fresh)), folder)
    (Path(__file__).parents[2] / "conf" / "jars.lock").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
