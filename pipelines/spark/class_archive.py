"""The JVM's archive of loaded classes (AppCDS): Spark and Delta load 30,000 of them, and an archive keeps them ready.

`make setup` makes it once (`jobs.archive_classes`). An audit of kraft39-faults took 5.5 s less with it, of 50. It only
ever makes faster: where it is absent, or of another JVM or class path, the JVM loads classes the slow way.
"""

from __future__ import annotations

import os
from pathlib import Path

from highwater.pipelines.base.jars import find_jars_dir

#: Names the file that this process's JVM shall write its classes to when it ends.
DUMP_VARIABLE = "HIGHWATER_DUMP_CLASSES"

#: Options that silence the JVM about an unsuitable archive: some releases log it as an error.
_QUIET = "-Xlog:disable -Xlog:all=error,cds=off:stderr"


def archive_path() -> Path:
    """Return the path of the JVM's class archive (AppCDS), which may not exist."""
    return find_jars_dir().parent / "classes.jsa"


def archive_options() -> tuple[str, ...]:
    """Return the JVM options that use the class archive, or that write it if `DUMP_VARIABLE` is set."""
    dump = os.environ.get(DUMP_VARIABLE)
    if dump:
        return (f'"-XX:ArchiveClassesAtExit={dump}"', _QUIET)
    if archive_path().is_file():
        return (f'"-XX:SharedArchiveFile={archive_path()}"', _QUIET)
    return ()
