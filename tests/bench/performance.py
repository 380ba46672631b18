"""What an audit costs, beside what reading the same lines costs: ``python -m tests.bench.performance LOGS...``

    python -m tests.bench.performance tests/data/slice --markdown docs/performance.md

Each folder of logs is audited by the command, in a process and a lake of its own, as often as ``--runs`` says. Beside
it, in turn, two peers read the same files: a Python process that takes each line and decodes its JSON (orjson), and
DuckDB, which takes the fields of requests that silver has out of them and writes them as Parquet. The table has
medians; ratios come first, since they hold where the machine's speed does not. ``--markdown FILE`` puts it into a
document, between its two marks.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import duckdb
import orjson

from highwater.pipelines.bronze.discover import discover
from tests.bench.figures import insert, markdown

HEADS = (
    *("input", "audit / orjson lines", "audit / DuckDB", "MB of text", "records", "audit", "MB/s", "ingest", "parse"),
    *("quality", "replay", "report", "core-s JVM", "core-s Python", "peak JVM", "peak driver", "peak worker"),
)
STAGES = ("ingest", "parse", "quality", "replay", "report")
_STAGE = re.compile(r"^(\w[\w ]*?) +(\d+\.\d) s$", re.MULTILINE)
_RECORDS = re.compile(r"new: (\d+) records")
_SAMPLED_S = 0.2
_MB = 1e6
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
#: What `silver` takes from a request, as a path of its JSON.
_FIELDS = (
    *("$.requestHeader.requestApiKeyName", "$.requestHeader.clientId", "$.requestHeader.correlationId"),
    *("$.connection", "$.totalTimeMs", "$.requestQueueTimeMs", "$.localTimeMs", "$.remoteTimeMs", "$.throttleTimeMs"),
    *("$.responseQueueTimeMs", "$.sendTimeMs", "$.securityProtocol", "$.principal", "$.listener", "$.request"),
    "$.response",
)
_DUCKDB = """
COPY (
    WITH lines AS (
        SELECT filename, column0 AS line
        FROM read_csv({files}, columns = {{'column0': 'VARCHAR'}}, delim = '\x01', quote = '', escape = '',
                      header = false, filename = true, max_line_size = 33554432, strict_mode = false)
    ), records AS (
        SELECT filename, substr(line, 2, 23) AS time, regexp_extract(line, '^\\[[^]]*\\] (\\w+) ', 1) AS level,
               regexp_extract(line, ' \\(([^()]*)\\)$', 1) AS logger,
               regexp_extract(line, 'request:(\\{{.*\\}})', 1) AS body,
               CASE WHEN contains(line, 'Completed request:') THEN NULL ELSE line END AS message
        FROM lines
    )
    SELECT filename, time, level, logger, message,
           CASE WHEN body <> '' THEN json_extract(body, {fields}) END AS fields
    FROM records
) TO '{target}' (FORMAT parquet)
"""


@dataclass
class Usage:
    """What a process and those below it used: core-seconds and peak bytes, by kind of process."""

    seconds: float = 0.0
    core_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    peak: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    printed: str = ""


def main(arguments: list[str]) -> int:
    """Measure, print, and write the document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--conf", type=Path, help="TOML of the audits")
    parser.add_argument("--markdown", type=Path, help="a document that holds the table")
    given = parser.parse_args(arguments)
    rows = []
    for logs in given.logs:
        rows.append(_row(logs, given.runs, given.conf))
        print("\n".join(markdown(HEADS, [rows[-1]])), flush=True)
    lines = markdown(HEADS, rows)
    print("\n" + "\n".join(lines))
    if given.markdown:
        insert(given.markdown, lines)
    return 0


def _row(logs: Path, runs: int, conf: Path | None) -> tuple[str, ...]:
    files = [path for path in discover([logs]).files if path.endswith((".gz", ".log"))]
    audits, lines, ducks, size = [], [], [], 0
    for _ in range(runs):
        audits.append(audited(logs, conf))
        seconds, size = _timed(lambda: decoded(files))
        lines.append(seconds)
        ducks.append(_timed(lambda: extracted(files))[0])
    seconds = median(audit.seconds for audit in audits)
    stages: dict[str, list[float]] = defaultdict(list)
    for audit in audits:
        for stage, stage_s in stages_of(audit.printed).items():
            stages[stage].append(stage_s)

    def worked(kind: str) -> str:
        return f"{median(sum(s for k, s in audit.core_s.items() if k.startswith(kind)) for audit in audits):.0f} s"

    def peak(kind: str) -> str:
        return f"{max(audit.peak[kind] for audit in audits) / _MB:,.0f} MB"

    records = _RECORDS.search(audits[0].printed)
    return (
        logs.name,
        f"{seconds / median(lines):.1f}",
        f"{seconds / median(ducks):.1f}",
        f"{size / _MB:,.0f}",
        f"{int(records[1]):,}" if records else "-",
        f"{seconds:.1f} s",
        f"{size / _MB / seconds:.1f}",
        *(f"{median(stages[stage]):.1f} s" if stages[stage] else "-" for stage in STAGES),
        worked("jvm"),
        worked("python"),
        peak("jvm"),
        peak("python driver"),
        peak("python worker"),
    )


def stages_of(printed: str) -> dict[str, float]:
    """Seconds by stage, as an audit prints them."""
    return {stage: float(stage_s) for stage, stage_s in _STAGE.findall(printed)}


def audited(logs: Path, conf: Path | None) -> Usage:
    """One audit, from a process that starts to a process that has ended."""
    with tempfile.TemporaryDirectory(prefix="highwater-bench-") as scratch:
        places = ["--lake", str(Path(scratch, "lake")), "--out", str(Path(scratch, "report"))]
        verb = [sys.executable, "-m", "highwater.jobs.cli", "audit", str(logs), *places]
        return watched([*verb, *(["--conf", str(conf)] if conf else [])], Path(scratch, "printed"))


def watched(command: Sequence[str], printed: Path, checkout: Path | None = None) -> Usage:
    """A command that ends with a verdict, and what its processes used, looked at five times a second.

    Waiting for them would not tell: PySpark's daemon has the kernel forget its workers.

    Args:
        printed: a file for what it prints.
        checkout: folder to run it in.

    Raises:
        SystemExit: it ended with none of the codes of a verdict.
    """
    usage = Usage()
    started = time.perf_counter()
    with printed.open("w") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, cwd=checkout, env=_environment(checkout)
        )
        cores: dict[int, tuple[str, float]] = {}
        while process.poll() is None:
            for pid, kind, core_s, resident in _tree(process.pid):
                cores[pid] = kind, core_s
                usage.peak[kind] = max(usage.peak[kind], resident)
            time.sleep(_SAMPLED_S)
    usage.seconds = time.perf_counter() - started
    for kind, core_s in cores.values():
        usage.core_s[kind] += core_s
    usage.printed = printed.read_text()
    if process.returncode not in (0, 1, 3):
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{usage.printed}")
    return usage


def _environment(checkout: Path | None) -> dict[str, str]:
    return os.environ | ({} if checkout is None else {"PYTHONPATH": str(checkout)})


def _tree(root: int) -> list[tuple[int, str, float, int]]:
    """Process id, kind, core-seconds and resident bytes of a process and all below it."""
    below: dict[int, list[int]] = defaultdict(list)
    stats: dict[int, tuple[str, float, int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:  # it has ended
            continue
        values = rest.split()
        below[int(values[1])].append(int(entry.name))
        core_s = (int(values[11]) + int(values[12])) / _TICKS
        stats[int(entry.name)] = name, core_s, int(values[21]) * _PAGE
    processes, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        waiting += below[pid]
        if pid in stats:
            name, core_s, resident = stats[pid]
            kind = "jvm" if name == "java" else "python driver" if pid == root else "python worker"
            processes.append((pid, kind, core_s, resident))
    return processes


def _timed(work: Callable[[], int]) -> tuple[float, int]:
    started = time.perf_counter()
    given = work()
    return time.perf_counter() - started, given


def decoded(files: Sequence[str]) -> int:
    """Read all lines, decode what is JSON in them; the bytes read."""
    size = 0
    for path in files:
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as lines:
            for line in lines:
                size += len(line)
                begin = line.find(b"request:{")
                if begin >= 0:
                    orjson.loads(line[begin + 8 : line.rindex(b"}") + 1])
    return size


def extracted(files: Sequence[str]) -> int:
    """Have DuckDB take the fields out of all lines, and write them; the bytes written."""
    with tempfile.TemporaryDirectory(prefix="highwater-bench-") as scratch:
        target = Path(scratch, "fields.parquet")
        duckdb.sql(_DUCKDB.format(files=list(files), fields=list(_FIELDS), target=target))
        return target.stat().st_size


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
