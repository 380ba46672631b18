"""The command in a session of its own, watched from outside, and killed as a power failure would.

Nothing in the product knows of this: boundaries are what anybody can see, the stage lines on stderr and what appears
in the lake's folders.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from highwater.pipelines.storage.place import place_of, relative
from highwater.pipelines.storage.store import store_of

ROOT = Path(__file__).parents[2]
POLL_S = 0.02
TIMEOUT_S = 1200
_STAGE = re.compile(r"^(\S.*?) +\d+\.\d s$", re.MULTILINE)
#: One task at a time per table is plenty for small inputs, and starts a fraction of the Python workers.
SMALL_CONF = '[session]\nmaster = "local[2]"\nshuffle_partitions = 1\nlock_wait_s = 0\n'


@dataclass(frozen=True)
class Ended:
    """A run that ended by itself."""

    code: int
    out: str
    err: str
    seconds: float
    #: of all its processes, give or take what they did in their last half second: what does not depend on who else
    #: uses the machine
    cpu_s: float

    @property
    def complaints(self) -> list[str]:
        """Lines that the command itself wrote of an error."""
        return [line for line in self.err.splitlines() if line.startswith("highwater: ")]


@dataclass
class Seen:
    """What can be seen of a run by now."""

    seconds: float = 0.0  #: since it was started
    #: commits that it made by table, in the order of the first of each
    commits: dict[str, int] = field(default_factory=dict)
    written: dict[str, None] = field(default_factory=dict)  #: tables that it began to write files for
    stages: list[str] = field(default_factory=list)  #: stages that it told to have ended


class Command:
    """``highwater`` in a process that leads a session: of the driver, its JVM, and the JVM's Python workers.

    Args:
        folder: gets the output of the run; the lake and the report are below it unless said otherwise.
        site: folder that has the package `highwater`.
    """

    def __init__(
        self,
        folder: Path,
        verb: str,
        *arguments: object,
        conf: str = SMALL_CONF,
        lake: Path | str | None = None,
        out: Path | str | None = None,
        site: Path = ROOT,
    ) -> None:
        self.lake = lake or folder / "lake"
        folder.mkdir(parents=True, exist_ok=True)
        settings = folder / "conf.toml"
        settings.write_text(conf)
        options = ["--lake", self.lake, "--conf", settings]
        if verb in ("audit", "report", "bundle"):
            options += ["--out", out or folder / "report"]
        # Of its own each time: two runs may share the folder.
        self._name = folder / f"run-{time.monotonic_ns()}"
        self._before = _commits(self.lake), _written(self.lake)
        self._started = time.monotonic()
        with open(f"{self._name}.out", "wb") as stdout, open(f"{self._name}.err", "wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "highwater.jobs.cli", verb, *map(str, (*arguments, *options))],
                cwd=site,
                env={**os.environ, "COLUMNS": "100", "PYTHONPATH": str(site)},
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )

    def seen(self) -> Seen:
        """Look."""
        commits, written = self._before
        # Version 0 makes a table; all of them are made before anything is written.
        now = {table: version - commits.get(table, 0) for table, version in _commits(self.lake).items()}
        return Seen(
            seconds=time.monotonic() - self._started,
            commits={table: count for table, count in now.items() if count},
            written=dict.fromkeys(
                table for table, files in _written(self.lake).items() if files - written.get(table, set())
            ),
            stages=_STAGE.findall(self.err()),
        )

    def until(self, reached: Callable[[Seen], Any]) -> Any:
        """Wait until `reached` gives something, and give that; None if the run ends before."""
        while self.process.poll() is None:
            found = reached(self.seen())
            if found:
                return found
            self._in_time()
            # Of a store it is a request each time.
            time.sleep(POLL_S if isinstance(self.lake, Path) else 20 * POLL_S)
        return None

    def _in_time(self) -> None:
        if time.monotonic() - self._started > TIMEOUT_S:
            self.kill()
            raise TimeoutError(f"{self.process.args} did not end: {self.err()}")

    def ended(self) -> Ended:
        """Wait until it has ended."""
        cpu_s: dict[int, float] = {}
        while self.process.poll() is None:
            cpu_s |= _members(self.process.pid)
            self._in_time()
            time.sleep(0.5)
        out = Path(f"{self._name}.out").read_text()
        seconds = time.monotonic() - self._started
        return Ended(self.process.returncode, out, self.err(), seconds, sum(cpu_s.values()))

    def err(self) -> str:
        """What it has written to stderr."""
        return Path(f"{self._name}.err").read_text()

    def kill(self) -> int:
        """SIGKILL to every process of the session; gives how many there were. Pipes and groups do not hide any."""
        killed: set[int] = set()
        while members := _members(self.process.pid):
            for pid in members:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            killed |= members.keys()
            self.process.poll()  # a zombie would stay a member
            time.sleep(0.005)
        self.process.wait()
        return len(killed)

    def signal(self, number: int) -> None:
        """A signal to every process of the session, as to a machine that sleeps."""
        for pid in _members(self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill_driver(self) -> None:
        """SIGKILL to the Python process alone."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill_jvm(self) -> None:
        """SIGKILL to the JVM alone, as the kernel does when memory runs out."""
        for pid in _members(self.process.pid):
            if Path("/proc", str(pid), "comm").read_text() == "java\n":
                os.kill(pid, signal.SIGKILL)


def highwater(
    folder: Path,
    verb: str,
    *arguments: object,
    conf: str = SMALL_CONF,
    lake: Path | str | None = None,
    out: Path | str | None = None,
    site: Path = ROOT,
) -> Ended:
    """Run the command to its end."""
    return Command(folder, verb, *arguments, conf=conf, lake=lake, out=out, site=site).ended()


def _members(session: int) -> dict[int, float]:
    """Living processes of a session, and the CPU seconds that each has used.

    Not of a process group: the JVM's Python workers have one of their own.
    """
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            if int(fields[3]) == session and fields[0] not in "ZX":
                found[int(entry)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found


def _commits(lake: Path | str) -> dict[str, int]:
    """Latest version of each table."""
    found: dict[str, int] = {}
    for table, name in _files(lake):
        if re.fullmatch(r"_delta_log/\d{20}\.json", name):
            found[table] = max(found.get(table, 0), int(name[11:31]))
    return found


def _written(lake: Path | str) -> dict[str, set[str]]:
    """Data files of each table, committed or not."""
    found: dict[str, set[str]] = {}
    for table, name in _files(lake):
        if re.fullmatch(r"(.*/)?part-.*\.parquet", name):
            found.setdefault(table, set()).add(name)
    return found


def _files(lake: Path | str) -> Iterator[tuple[str, str]]:
    """Table, and path within it, of every file of a lake's tables."""
    if isinstance(lake, Path):
        paths = [
            Path(folder, name).relative_to(lake).as_posix() for folder, _, names in os.walk(lake) for name in names
        ]
    else:
        root = place_of(lake)
        paths = [relative(file, root) for file in store_of(root).walk(root)]
    for path in paths:
        layer, _, rest = path.partition("/")
        table, _, name = rest.partition("/")
        if name and not layer.startswith("_"):
            yield f"{layer}.{table}", name


def table_name(folder: Path) -> str:
    """``layer.table``."""
    return f"{folder.parent.name}.{folder.name}"
