"""The steps of the Dockerfile without Docker: each RUN in a folder of its own, with an empty HOME, then the demo."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.install
ROOT = Path(__file__).resolve().parents[2]
KEPT = ("PATH", "LANG", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")


def _instructions() -> list[tuple[str, str]]:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def _ignored() -> list[str]:
    return [line.removeprefix("**/") for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()]


def test_the_image_runs_the_demo(tmp_path: Path) -> None:
    source, installed, home = tmp_path / "src", tmp_path / "opt", tmp_path / "home"
    home.mkdir()
    environment = {
        name: value for name, value in os.environ.items() if name in KEPT or name.startswith(("PIP_", "http"))
    }
    environment |= {"HOME": str(home), "COLUMNS": "100"}

    def run(line: str) -> subprocess.CompletedProcess[str]:
        line = re.sub(r"/src\b", str(source), line.replace("/opt/highwater", str(installed)))
        line = re.sub(r"\bpython -m venv", f"{sys.executable} -m venv", line)
        return subprocess.run(
            ["sh", "-ec", line], cwd=home, env=environment, capture_output=True, text=True, timeout=1800, check=False
        )

    entry = ""
    for name, rest in _instructions():
        if name == "COPY":
            shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*_ignored()), symlinks=True)
        elif name == "RUN" and not {"apt-get", "useradd"} & {*rest.split()}:  # Java is here already, and users stay
            done = run(rest)
            assert done.returncode == 0, done.stderr
        elif name == "ENV":
            variable, _, value = rest.partition("=")
            environment[variable] = value.replace("/opt/highwater", str(installed)).replace("$PATH", os.environ["PATH"])
        elif name == "ENTRYPOINT":
            entry = " ".join(re.findall(r'"([^"]*)"', rest))
    assert not source.exists()
    done = run(f"{entry} demo --no-open")
    assert done.returncode == 0, done.stderr
    assert "LOST: 1 acknowledged record of ledger-0 (offset 118)" in done.stdout
    # One package, and nothing of ours beside it.
    (site,) = installed.glob("lib/python*/site-packages")
    assert (site / "highwater" / "jobs").is_dir()
    assert not any((site / name).exists() for name in ("jobs", "pipelines", "schemas", "conf"))
    program = "from highwater.views import register; print(register.__module__)"
    assert run(f'python -c "{program}"').stdout == "highwater.pipelines.lake.views\n"
