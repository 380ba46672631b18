"""Delta's jars for this installation, and their folder.

They are fetched when Spark first needs them (`jobs.fetch_jars`), into ``share/highwater/jars`` of the environment, or
into the user's cache if that is not writable. ``HIGHWATER_JARS`` names another folder, for machines that get their jars
some other way.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path

JARS_VARIABLE = "HIGHWATER_JARS"

_SCALA = "2.13"


def find_jars_dir() -> Path:
    """Return the folder with the jars for Spark sessions. It may not exist."""
    if named := os.environ.get(JARS_VARIABLE):
        return Path(named)
    installed = Path(sys.prefix) / "share" / "highwater" / "jars"
    if installed.is_dir() or os.access(sys.prefix, os.W_OK):
        return installed
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "highwater" / "jars"


def find_delta_package() -> str:
    """Return the Maven coordinates of the Delta release for the installed `pyspark` and `delta-spark`."""
    return f"io.delta:{_name_artifact()}:{version('delta-spark')}"


def find_delta_jars() -> tuple[Path, ...]:
    """Return Delta's jars and their dependencies beyond Spark's own jars; empty if one is missing.

    Jars of another Delta release do not count: they would fail much later, and less clearly.
    """
    jars = tuple(sorted(find_jars_dir().glob("*.jar")))
    names = [jar.name for jar in jars]
    release = version("delta-spark")
    wanted = (f"{_name_artifact()}-{release}.jar", f"delta-storage-{release}.jar")
    return jars if all(any(name.endswith(end) for name in names) for end in wanted) else ()


def _name_artifact() -> str:
    spark = ".".join(version("pyspark").split(".")[:2])
    return f"delta-spark_{spark}_{_SCALA}"
