"""Small inputs: enough of the bundled slice to fill most tables, little enough to be audited dozens of times."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.crash.commands import ROOT
from tests.cuts import logs

SLICE = ROOT / "tests" / "data" / "slice"
#: Requests of these seconds; between the instants each piece has a second of them.
SINCE, UNTIL = b"[2026-11-20 15:34:05", b"[2026-11-20 15:34:08"
INSTANTS = ("2026-11-20 15:34:06", "2026-11-20 15:34:07")


def small_corpus(target: Path) -> Path:
    """All logs of the slice, the large request logs for three seconds only."""
    for log in logs(SLICE):
        content = log.content
        if log.path.name == "kafka-request.log":
            content = b"".join(line for line in content.splitlines(keepends=True) if SINCE <= line < UNTIL)
        path = target / log.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if content:
            path.write_bytes(content)
    return target


def size(folder: Path) -> tuple[int, int]:
    """Files and lines below a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    contents = [path.read_bytes() for path in files]
    return len(files), sum(
        (gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content).count(b"\n") for content in contents
    )
