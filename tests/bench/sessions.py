"""Prints docs/sessions.md: the answer of an audit for several clusters, then the examples of each verb's --help.

The examples run on a terminal of 80 columns where `logs` is the folder of the bundled logs. A case is a folder of logs,
which is audited, or a lake.

python -m tests.bench.sessions --markdown docs/sessions.md [--case NAME=FOLDER...]
"""

from __future__ import annotations

import argparse
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from highwater.jobs.demo import LOGS
from highwater.jobs.help import EXAMPLES, GROUPS

ROOT = Path(__file__).resolve().parents[2]
#: Of an output; the rest is counted.
LINES_MAX = 24
#: Those whose output is a script, a file, or what a shell makes of it.
_LEFT_OUT = ("completion", "demo", "airflow")
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|.*\r(?!\n)")


def session(line: str, folder: Path) -> tuple[str, int]:
    """What a line of a shell prints on a terminal, and its exit code."""
    command = line.replace("highwater", f"{sys.executable} -m highwater.jobs.cli", 1)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        ["sh", "-c", command], cwd=folder, env=environment, stdout=follower, stderr=subprocess.DEVNULL
    )
    os.close(follower)
    printed = b""
    while True:
        try:
            block = os.read(leader, 65536)
        except OSError:  # the terminal is gone with whoever wrote to it
            break
        if not block:
            break
        printed += block
    os.close(leader)
    text = _CONTROLS.sub("", printed.decode(errors="replace")).replace("\r\n", "\n")
    # No path of the machine that made the document.
    for there, shown in ((sys.prefix, "/opt/highwater"), (str(ROOT), "/src/highwater"), (str(folder), "/home/you")):
        text = text.replace(there, shown)
    return text, process.wait()


def answers(cases: Sequence[tuple[str, Path]], folder: Path) -> str:
    """Return a section with what an audit of each case prints."""
    parts = ["## The answer first"]
    for name, place in cases:
        is_lake = (place / "bronze").is_dir()
        (folder / name).symlink_to(place.resolve())
        shown = f"highwater report --lake {name}" if is_lake else f"highwater audit {name} --lake {name}-lake"
        printed, code = session(shown, folder)
        lines = [text.rstrip() for text in printed.replace(f"{place.resolve()}", name).rstrip().splitlines()]
        parts.append("\n".join([f"### {name}", "```", f"$ highwater audit {name}", *lines, f"[{code}]", "```"]))
    return "\n".join(parts)


def document(folder: Path, cases: Sequence[tuple[str, Path]]) -> str:
    """Return the answers, then a section for each verb."""
    parts = [
        "# Sessions\n",
        "Made by `python -m tests.bench.sessions`: what an audit prints of some clusters, then the examples of each",
        "`--help`, on a terminal of 80 columns.",
        *([f"\n{answers(cases, folder)}"] if cases else []),
    ]
    for title, verbs in GROUPS.items():
        parts.append(f"\n## {title}")
        for verb in verbs:
            names = [verb, *(name for name in EXAMPLES if name.startswith(f"{verb} "))]
            for name in names[1:] or names:
                if verb not in _LEFT_OUT:
                    parts.append(_section(EXAMPLES[name][0], folder))
    return "\n".join(parts) + "\n"


def _section(line: str, folder: Path) -> str:
    printed, code = session(line, folder)
    lines = [text.rstrip() for text in printed.replace(f"{folder.resolve()}/", "").rstrip().splitlines()]
    wide = [text for text in lines if len(text) > 80 and " " in text[80:]]
    if wide:
        sys.stderr.write(f"{line}: {len(wide)} lines are wider than the terminal, as {wide[0]!r}\n")
    more = [f"... {len(lines) - LINES_MAX} lines more"] if len(lines) > LINES_MAX else []
    return "\n".join(["```", f"$ {line}", *lines[:LINES_MAX], *more, f"[{code}]", "```"])


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", type=Path, required=True)
    parser.add_argument("--case", action="append", default=[], help="NAME=FOLDER of logs or of a lake")
    given = parser.parse_args()
    cases = [(name, Path(place)) for name, _, place in (case.partition("=") for case in given.case)]
    with tempfile.TemporaryDirectory(prefix="highwater-sessions-") as scratch:
        (Path(scratch) / "logs").symlink_to(LOGS)
        given.markdown.write_text(document(Path(scratch), cases), encoding="utf-8")


if __name__ == "__main__":
    main()
