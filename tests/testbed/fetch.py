"""The jars of a release, from Maven Central through `mvn`, once."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.testbed.release import EXCLUDED, LOG4J_1, ZOOKEEPER_SERVER, Release

TIMEOUT_S = 600
NO_MAVEN = "there is no mvn; install Maven 3 (apt install maven, brew install maven) to fetch releases of Kafka"

_DEPENDENCY = """<dependency>
  <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>{kind}
  <exclusions>{exclusions}</exclusions>
</dependency>
"""
_EXCLUSION = "<exclusion><groupId>{group}</groupId><artifactId>{artifact}</artifactId></exclusion>"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>testbed</groupId><artifactId>{name}</artifactId><version>1</version>
<dependencies>
{dependencies}</dependencies>
</project>
"""


class FetchError(Exception):
    """Jars cannot be had."""


def further_jar(release: Release, artifact: str, folder: Path) -> Path:
    """Folder with an artifact of a release that no broker has by itself: ``artifact:classifier``."""
    name, _, classifier = artifact.partition(":")
    place = f"org.apache.kafka:{name}:{release}:{classifier}"
    return _jars(f"kafka-{release}-{name}-{classifier}", [place], ("*:*",), folder)


def release_jars(release: Release, folder: Path) -> Path:
    """Folder with all that a broker of a release needs."""
    return _jars(f"kafka-{release}", release.artifacts, release.excluded, folder)


def zookeeper_jars(folder: Path) -> Path:
    """Folder with all that the ZooKeeper server needs."""
    return _jars("zookeeper", (ZOOKEEPER_SERVER, *LOG4J_1), EXCLUDED, folder)


def fetch_all(releases: Iterable[Release], with_zookeeper: bool, folder: Path) -> None:
    """Fetch all that a run will need, so that no fault waits for a download."""
    for release in releases:
        for needed in {release, release.tools}:
            release_jars(needed, folder)
    if with_zookeeper:
        zookeeper_jars(folder)


def class_path(jars: Path) -> str:
    """The jars of a folder for `java -cp`, always in one order."""
    return ":".join(sorted(map(str, jars.glob("*.jar"))))


def pom(name: str, artifacts: Sequence[str], excluded: Sequence[str]) -> str:
    """A project that depends on artifacts, each ``group:artifact:version``, or with ``:classifier`` behind it."""
    left_out = "".join(
        _EXCLUSION.format(group=group, artifact=artifact) for group, artifact in (text.split(":") for text in excluded)
    )
    dependencies = ""
    for text in artifacts:
        group, artifact, version, *classifier = text.split(":")
        kind = f"<classifier>{classifier[0]}</classifier>" if classifier else ""
        place = {"group": group, "artifact": artifact, "version": version, "kind": kind}
        dependencies += _DEPENDENCY.format(**place, exclusions=left_out)
    return _POM.format(name=name, dependencies=dependencies)


def _jars(name: str, artifacts: Sequence[str], excluded: Sequence[str], folder: Path) -> Path:
    """Resolve and copy into a folder of its own, which appears when it is complete.

    Raises:
        FetchError: Maven is not there, or does not find something.
    """
    text = pom(name, artifacts, excluded)
    target = folder / name
    if (target / "pom.xml").is_file() and (target / "pom.xml").read_text(encoding="utf-8") == text:
        return target
    if shutil.which("mvn") is None:
        raise FetchError(NO_MAVEN)
    scratch = folder / f"{name}.{os.getpid()}.partial"
    scratch.mkdir(parents=True)
    try:
        (scratch / "pom.xml").write_text(text, encoding="utf-8")
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={scratch}", "-DincludeScope=runtime"]
        done = subprocess.run(
            ["mvn", "-q", "-B", "-f", str(scratch / "pom.xml"), *goal],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            raise FetchError(f"mvn cannot resolve {', '.join(artifacts)}:\n{done.stdout[-2000:]}")
        shutil.rmtree(target, ignore_errors=True)
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target
