"""Further jars of Spark, fetched from Maven Central once, so that sessions start offline.

``conf/jars.lock`` says which (`tests/bench/resolve_jars.py` writes it): a line is the folder, Maven's coordinates,
bytes and SHA-256. A mirror is taken from ``HIGHWATER_MAVEN``, else from ``~/.m2/settings.xml``.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import urlopen
from xml.etree import ElementTree

from highwater.pipelines.base.config import SessionConfig
from highwater.pipelines.base.console import Console, RichConsole
from highwater.pipelines.base.errors import EnvironmentProblem, HighwaterError
from highwater.pipelines.base.jars import JARS_VARIABLE, find_jars_dir
from highwater.pipelines.base.resources import find_conf_file
from highwater.pipelines.spark.session import is_delta_missing
from highwater.pipelines.storage.unmade import undo_folders

MIRROR_VARIABLE = "HIGHWATER_MAVEN"
CENTRAL = "https://repo1.maven.org/maven2"
#: Folders of the lock: Delta's jars, and the jars of S3's file system.
DELTA, S3 = ".", "s3"
_TIMEOUT_S = 60
_MIRRORED = ("central", "*", "external:*")


class Jar(NamedTuple):
    """A line of conf/jars.lock."""

    folder: str  #: below the folder of jars
    group: str
    artifact: str
    version: str
    size_bytes: int
    digest: str

    @property
    def place(self) -> Path:
        """Return the path of the jar."""
        return find_jars_dir() / self.folder / f"{self.group}_{self.artifact}-{self.version}.jar"

    @property
    def address(self) -> str:
        """Return the path of the jar in a Maven repository."""
        return "/".join((*self.group.split("."), self.artifact, self.version, f"{self.artifact}-{self.version}.jar"))

    @property
    def is_there(self) -> bool:
        """Return True if the jar's file exists. Jars get their final name only when they are complete."""
        return self.place.is_file()


def read_locked(folder: str) -> list[Jar]:
    """Return the jars that conf/jars.lock lists for a folder."""
    lines = find_conf_file("jars.lock").read_text(encoding="utf-8").splitlines()
    rows = (line.split() for line in lines)
    jars = [Jar(row[0], *row[1].split(":"), int(row[2]), row[3]) for row in rows]  # type: ignore[arg-type, call-arg]
    return [jar for jar in jars if jar.folder == folder]


def fetch_missing(console: Console, session: SessionConfig) -> None:
    """Fetch Delta's jars if the next session needs them and they are missing.

    Raises:
        EnvironmentProblem: the jars cannot be fetched.
    """
    if is_delta_missing(session):
        fetch(console, DELTA)


def fetch(console: Console, folder: str) -> Path:
    """Fetch jars into `folder`, unless present, and return the folder's path.

    Raises:
        EnvironmentProblem: the repository does not answer, or sends a file with a wrong checksum.
    """
    jars = read_locked(folder)
    target = jars[0].place.parent
    missing = [jar for jar in jars if not jar.is_there]
    if not missing:
        return target
    repository = _find_repository()
    size_mb = sum(jar.size_bytes for jar in missing) / 1e6
    with console.stage(f"fetch {len(missing)} jars, {size_mb:.0f} MB"), undo_folders(target):
        for jar in missing:
            try:
                _fetch_jar(f"{repository}/{jar.address}", jar)
            except (URLError, OSError, ValueError) as error:
                raise EnvironmentProblem(
                    f"{jar.group}:{jar.artifact} could not be fetched from {repository} ({error})",
                    f"check network and proxy, or name a mirror in {MIRROR_VARIABLE}; off line, run `highwater doctor "
                    f"--fetch` where there is a network and copy the folder that it prints to {find_jars_dir()} (or to "
                    f"one that {JARS_VARIABLE} names)",
                ) from error
    for other in target.glob("*.jar"):
        if other not in {jar.place for jar in jars}:
            other.unlink()  # of an earlier version
    return target


def _fetch_jar(address: str, jar: Jar) -> None:
    """Fetch one jar. The file gets its final name when it is complete."""
    jar.place.parent.mkdir(parents=True, exist_ok=True)
    partial = jar.place.with_suffix(".partial")
    with urlopen(address, timeout=_TIMEOUT_S) as answer, partial.open("wb") as file:
        shutil.copyfileobj(answer, file)
    if sha256(partial.read_bytes()).hexdigest() != jar.digest:
        partial.unlink()
        raise ValueError("its hash differs from conf/jars.lock")
    partial.replace(jar.place)


def _find_repository() -> str:
    named = os.environ.get(MIRROR_VARIABLE) or next(_read_mirrors(Path.home() / ".m2" / "settings.xml"), CENTRAL)
    return named.rstrip("/")


def _read_mirrors(settings: Path) -> Iterator[str]:
    """Yield mirrors of Maven Central in Maven's settings."""
    try:
        mirrors = ElementTree.parse(settings).iterfind(".//{*}mirror")
    except (OSError, ElementTree.ParseError):
        return
    for mirror in mirrors:
        if any(name in _MIRRORED for name in (mirror.findtext("{*}mirrorOf") or "").split(",")):
            yield mirror.findtext("{*}url") or CENTRAL


def main() -> None:
    """Fetch the jars for `make setup` and `make s3`."""
    try:
        for folder in (DELTA, *sys.argv[1:]):
            sys.stdout.write(f"jars are in {fetch(RichConsole(), folder)}\n")
    except HighwaterError as error:
        sys.exit(f"highwater: {error}")


if __name__ == "__main__":
    main()
