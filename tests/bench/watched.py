"""`highwater watch` beside a real cluster whose brokers are paused, restarted and killed while their logs rotate by the
minute: when each fault is told, and whether the last page is that of an audit of everything.

    python -m tests.bench.watched 3.9.1 --minutes 30

It takes what `make cluster` takes (docs/testbed.md). Ends with 1 if the kill is told later than a minute after it, no
log rotated, or the page differs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.faults import JUDGED

ROOT = Path(__file__).resolve().parents[2]
TESTBED = ROOT / ".testbed"
CLIENTS = ROOT / ".venv-testbed" / "bin" / "python"
#: After it a kill has to be told.
TOLD_S = 60
#: The cluster's start, and what comes after its last fault.
_SPARE_S = 900
_ID = re.compile(r"\[([0-9a-f]{12})\]$")
#: Of a report what is of a run, not of the logs.
_OF_RUN = ("provenance", "detail")
_OF_READING = ("file", "is_new")


class Line(NamedTuple):
    """A line of the watch: when it was printed, Unix seconds."""

    time: float
    text: str


def watch(logs: Sequence[Path], folder: Path, every_s: int) -> subprocess.Popen[str]:
    """A watch of folders of logs that grow."""
    command = [
        sys.executable,
        "-m",
        "highwater.jobs.cli",
        "watch",
        *logs,
        "--lake",
        folder / "lake",
        "--out",
        folder / "report",
    ]
    return subprocess.Popen(
        [*map(str, command), "--every", str(every_s)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def audit(logs: Sequence[Path], folder: Path) -> dict[str, Any]:
    """The report of one audit of everything."""
    command = [
        sys.executable,
        "-m",
        "highwater.jobs.cli",
        "audit",
        *logs,
        "--lake",
        folder / "lake",
        "--out",
        folder / "report",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([*map(str, command)], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False)
    return report(folder)


def report(folder: Path) -> dict[str, Any]:
    """What a run left."""
    read: dict[str, Any] = json.loads((folder / "report" / "report.json").read_text(encoding="utf-8"))
    return read


def faults(run: Path) -> list[dict[str, Any]]:
    """What was done to brokers."""
    rows = map(json.loads, (run / "faults.jsonl").read_text(encoding="utf-8").splitlines())
    return [row for row in rows if row["what"] in ("pause", "term", "kill") and "broker" in row]


def told(
    fault: dict[str, Any], lines: Sequence[Line], incidents: dict[str, dict[str, Any]]
) -> Iterator[tuple[Line, str]]:
    """Lines of the watch that tell of a fault's broker after it, each with the kind of its incident."""
    for line in lines:
        match = _ID.search(line.text)
        incident = incidents.get(match[1]) if match else None
        if incident is None or line.time < fault["t"] or fault["broker"] not in incident["broker_ids"]:
            continue
        if datetime.fromisoformat(incident["start_time"]).timestamp() >= fault["t"] - 1:
            yield line, incident["kind"]


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Fields of two reports that differ, with both values."""
    pairs = {name: (_of_logs(one.get(name)), _of_logs(other.get(name))) for name in sorted({*one, *other} - {*_OF_RUN})}
    return [f"{name}: {_short(first)} | {_short(second)}" for name, (first, second) in pairs.items() if first != second]


def _of_logs(value: Any) -> Any:
    """What of a value is of the logs: not which name a file had as it was read, nor what the run before had said."""
    if isinstance(value, dict):
        return {name: _of_logs(part) for name, part in value.items() if name not in _OF_READING}
    return [_of_logs(part) for part in value] if isinstance(value, list) else value


def _short(value: Any) -> str:
    return json.dumps(value)[:300]


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--every", type=int, default=30, help="seconds from round to round")
    parser.add_argument("--folder", type=Path, default=TESTBED / "watched")
    given = parser.parse_args()
    folder = given.folder.resolve()
    run = folder / "runs" / "corpus"
    testbed = [
        CLIENTS,
        "-m",
        "tests.testbed",
        "run",
        given.release,
        "--scenario",
        "rotation",
        "--minutes",
        given.minutes,
    ]
    cluster = subprocess.Popen(
        [*map(str, [*testbed, "--corpus", folder / "corpus", "--folder", folder])], cwd=ROOT, stdout=sys.stderr
    )
    try:
        return measured(cluster, run, folder, given.every)
    finally:
        cluster.terminate()
        cluster.wait()


def measured(cluster: subprocess.Popen[bytes], run: Path, folder: Path, every_s: int) -> int:
    """Watch the cluster until it has ended, and compare."""
    ledger = run / "faults.jsonl"
    began = time.time()
    while not (ledger.is_file() and ledger.stat().st_mtime > began and '"load"' in ledger.read_text(encoding="utf-8")):
        if cluster.poll() is not None or time.time() > began + _SPARE_S:
            sys.exit("the cluster did not start")
        time.sleep(1)
    logs = sorted(run.glob("node-*/logs"))
    watching, lines = watch(logs, folder / "watch", every_s), []

    def read() -> None:
        assert watching.stdout is not None
        for text in watching.stdout:
            lines.append(Line(time.time(), text.rstrip()))
            sys.stderr.write(f"{time.strftime('%T', time.gmtime())} watch: {text}")

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    cluster.wait()
    time.sleep(4 * every_s)
    watching.send_signal(signal.SIGTERM)
    code = watching.wait(_SPARE_S)
    reader.join(10)
    watched, audited = report(folder / "watch"), audit(logs, folder / "audit")
    incidents = {incident["incident_id"][:12]: incident for incident in watched["incidents"]}
    rotated = sum(1 for log in logs for file in log.iterdir() if re.search(r"\.log\.\d", file.name))
    print("| fault | broker | told after, s | as |\n|---|---:|---:|---|")
    late = []
    for fault in faults(run):
        seen = list(told(fault, lines, incidents))
        first = seen[0][0].time - fault["t"] if seen else None
        kinds = ", ".join(dict.fromkeys(kind for _, kind in seen if kind in JUDGED)) or ", ".join(
            k for _, k in seen[:1]
        )
        print(f"| {fault['what']} | {fault['broker']} | {'not' if first is None else round(first)} | {kinds} |")
        if fault["what"] == "kill" and (first is None or first > TOLD_S):
            late.append(fault)
    differ = differences(watched, audited)
    print(f"\n{rotated} files rotated; the watch ended with {code}; it differs from an audit in {len(differ)} fields")
    for difference in differ:
        print(f"  {difference}")
    return int(bool(late or not rotated or code or differ))


if __name__ == "__main__":
    sys.exit(main())
