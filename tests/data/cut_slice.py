"""Cut the bundled slice out of a corpus: all logs up to an instant, the request logs from another one on.

python tests/data/cut_slice.py CORPUS tests/data/slice "2026-11-20 15:33:52" "2026-11-20 15:34:26"
"""

from __future__ import annotations

import gzip
import json
import sys
from datetime import UTC, datetime
from pathlib import Path


def kept(lines: list[str], since: str, until: str) -> list[str]:
    """Lines from `since` up to `until`; a line without a time goes with the one before it."""
    result, inside = [], False
    for line in lines:
        if line.startswith("[2"):
            inside = since <= line[1:20] < until
        if inside:
            result.append(line)
    return result


def main(corpus: Path, target: Path, since: str, until: str) -> None:
    for source in sorted(corpus.glob("broker-*/logs/*.log.gz")):
        lines = gzip.decompress(source.read_bytes()).decode().splitlines(keepends=True)
        start = since if source.name.startswith("kafka-request") else ""
        out = target / source.relative_to(corpus)
        out.parent.mkdir(parents=True, exist_ok=True)
        # No time in the header: cutting twice gives the same bytes.
        out.write_bytes(gzip.compress("".join(kept(lines, start, until)).encode(), 9, mtime=0))
    bound = datetime.fromisoformat(until).replace(tzinfo=UTC).timestamp()
    faults = [line for line in (corpus / "faults.jsonl").read_text().splitlines() if json.loads(line)["t"] < bound]
    (target / "faults.jsonl").write_text("\n".join(faults) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4])
