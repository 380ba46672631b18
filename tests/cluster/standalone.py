"""A standalone master with two workers on loopback, which a test starts and stops, and the command on it.

Workers have this machine's disk and a Python without packages: their environment says nothing of the checkout, so what
executors run has come with the application.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from highwater.pipelines.base.jars import find_delta_jars

ROOT = Path(__file__).parents[2]
SPARK = Path(pyspark.__file__).parent
#: `make executors` makes it.
ARCHIVE = ROOT / "dist" / "highwater-executors.tar.gz"
START_S = 120
_REGISTERED = re.compile(r"Registering worker (\S+)")
#: The plain interpreter, without the packages of its virtual environment.
BARE_PYTHON = os.path.realpath(sys.executable)
_CONF = "[session]\nlock_wait_s = 0\n"
#: Executors that run this Python run this checkout, as the driver does.
_SAME_CODE = f'[session.spark]\n"spark.executorEnv.PYTHONPATH" = "{ROOT}"\n'


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def complaint(self) -> str:
        """The one line that the command wrote of an error."""
        (line,) = [line for line in self.err.splitlines() if line.startswith("highwater: ")]
        return line


@contextmanager
def standalone(folder: Path, hidden: Path | None = None) -> Iterator[str]:
    """The master's URL.

    Args:
        folder: for logs and for what executors unpack.
        hidden: a folder that the workers see empty, as on a machine that does not share it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        master = ["Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
        stack.enter_context(_daemon(folder / "master.log", master, None))
        for number in (1, 2):
            worker = ["Worker", "--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g"]
            worker += ["--work-dir", str(folder / f"work-{number}"), url]
            stack.enter_context(_daemon(folder / f"worker-{number}.log", worker, hidden))
        # One that is slow to hear that it is registered asks twice.
        _await(lambda: len(set(_REGISTERED.findall((folder / "master.log").read_text()))) == 2, folder)
        yield url


def _daemon(log: Path, arguments: Sequence[str], hidden: Path | None) -> _Process:
    command = [
        str(SPARK / "bin" / "spark-class"),
        f"org.apache.spark.deploy.{arguments[0].lower()}.{arguments[0]}",
        *arguments[1:],
    ]
    if hidden is not None:
        mounted = f'mount -t tmpfs none "{hidden}" && exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", mounted, "sh", *command]
    # The master says at INFO which workers have come.
    settings = log.with_suffix(".log4j2.properties")
    settings.write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.console.ref = console\n"
        "appender.console.type = Console\nappender.console.name = console\nappender.console.target = SYSTEM_ERR\n"
        "appender.console.layout.type = PatternLayout\nappender.console.layout.pattern = %p %c{1}: %m%n%ex\n"
    )
    options = f"-Dlog4j2.configurationFile={settings.as_uri()}"
    environment = _bare() | {"SPARK_DAEMON_JAVA_OPTS": options, "SPARK_LOCAL_IP": "127.0.0.1"}
    return _Process(command, environment, log)


class _Process:
    """A process that is stopped, and waited for, when its block ends."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], log: Path) -> None:
        self._command, self._environment, self._log = command, environment, log

    def __enter__(self) -> None:
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(self._command, env=self._environment, stdout=log, stderr=log)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _await(reached: Callable[[], bool], folder: Path) -> None:
    deadline = time.monotonic() + START_S
    while not reached():
        if time.monotonic() > deadline:
            raise TimeoutError(f"no standalone cluster within {START_S} s; its logs are in {folder}")
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _bare() -> dict[str, str]:
    """This process's environment without what would lead to its packages."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    return {key: value for key, value in os.environ.items() if key not in hidden} | {"SPARK_HOME": str(SPARK)}


def command(folder: Path, *arguments: object, python: str = sys.executable, timeout_s: int = 900) -> Done:
    """``highwater``, with its lake and report in a folder.

    Args:
        python: what executors run.
    """
    return _run(folder, [sys.executable, "-m", "highwater.jobs.cli"], arguments, python, timeout_s)


def submitted(folder: Path, master: str, options: Sequence[str], *arguments: object, python: str) -> Done:
    """The same by spark-submit."""
    jars = ",".join(map(str, find_delta_jars()))
    submit = [str(SPARK / "bin" / "spark-submit"), "--master", master, "--jars", jars, *options]
    return _run(folder, [*submit, str(ROOT / "jobs" / "cli.py")], arguments, python, 900)


def _run(folder: Path, start: Sequence[str], arguments: Sequence[object], python: str, timeout_s: int) -> Done:
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "conf.toml"
    settings.write_text(_CONF + (_SAME_CODE if python == sys.executable else ""))
    verb, *rest = map(str, arguments)
    places = ["--lake", str(folder / "lake"), "--conf", str(settings)]
    if verb == "audit":
        places += ["--out", str(folder / "report")]
    environment = _bare() | {
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    started = time.monotonic()
    done = subprocess.run(
        [*start, verb, *rest, *places],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )
    return Done(done.returncode, done.stdout, done.stderr, time.monotonic() - started)
