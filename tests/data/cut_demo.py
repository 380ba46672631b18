"""Cut the logs of `highwater demo` out of a corpus: all up to an instant, with data directories; of lines below
INFO only request logs, the high watermarks of leaders, and what they wrote at which offsets.

python tests/data/cut_demo.py CORPUS jobs/demo_logs "2026-11-20 15:41:34"
"""

from __future__ import annotations

import gzip
import re
import shutil
import sys
from pathlib import Path

DETAILS = re.compile(r"\] (?:DEBUG|TRACE) (?!.*(?:High watermark for partition|bytes written to log))")


def kept(lines: list[str], until: str, leave_out: re.Pattern[str] | None) -> list[str]:
    """Lines before `until`; a line without a time goes with the one before it."""
    result, inside = [], False
    for line in lines:
        if line.startswith("[2"):
            inside = line[1:20] < until and not (leave_out and leave_out.search(line))
        if inside:
            result.append(line)
    return result


def main(corpus: Path, target: Path, until: str) -> None:
    for source in sorted(corpus.glob("broker-*/**/*")):
        if not source.is_file() or not source.stat().st_size:
            continue
        out = target / source.relative_to(corpus)
        out.parent.mkdir(parents=True, exist_ok=True)
        if source.parent.name != "logs":
            shutil.copyfile(source, out)
            continue
        lines = gzip.decompress(source.read_bytes()).decode().splitlines(keepends=True)
        text = "".join(kept(lines, until, DETAILS if source.name.startswith("server") else None))
        # No time in the header: cutting twice gives the same bytes.
        out.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
