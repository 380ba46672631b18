"""Makes the JVM's class archive: ``python -m highwater.jobs.archive_classes LOGS`` audits logs for it.

The archive makes later starts faster. A failure is printed and has no other effect.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from highwater.jobs import cli
from highwater.pipelines.base.jars import find_delta_jars
from highwater.pipelines.spark.class_archive import DUMP_VARIABLE, archive_path

TIMEOUT_S = 300


def main(logs: Path) -> int:
    """Create the JVM's class archive by auditing `logs`, unless an archive newer than the jars exists. Return 0."""
    target = archive_path()
    if target.is_file() and target.stat().st_mtime > max(jar.stat().st_mtime for jar in find_delta_jars()):
        return 0
    with tempfile.TemporaryDirectory(prefix="highwater-archive-") as scratch:
        archived = Path(scratch, "classes.jsa")
        verb = [sys.executable, "-m", cli.__name__, "audit", str(logs)]
        places = ["--lake", str(Path(scratch, "lake")), "--out", str(Path(scratch, "report"))]
        process = subprocess.Popen(
            [*verb, *places],
            env={**os.environ, DUMP_VARIABLE: str(archived)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        # The JVM outlives the command that started it while it writes.
        deadline = time.monotonic() + TIMEOUT_S
        while _is_alive(process) and time.monotonic() < deadline:
            time.sleep(0.2)
        if not archived.is_file():
            sys.stderr.write("highwater: no class archive of the JVM could be made; starts take longer\n")
            return 0
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_suffix(".partial")
        partial.write_bytes(archived.read_bytes())
        partial.replace(target)
    return 0


def _is_alive(process: subprocess.Popen[bytes]) -> bool:
    process.poll()
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
