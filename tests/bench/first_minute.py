"""What the first minute costs on a machine that has Python and Java, and nothing of highwater: a new environment, an
empty HOME, another folder. Prints seconds and megabytes of each step, and of each package.

python -m tests.bench.first_minute [PYTHON[@JAVA_HOME]...] [--packages]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: What the demo prints of the record that is lost.
FINDING = "LOST: 1 acknowledged record of ledger-0 (offset 118)."


def timed(*command: object, folder: Path, **environment: str) -> tuple[float, subprocess.CompletedProcess[str]]:
    """Seconds of a command that has to succeed, with nothing of this environment but PATH and proxies."""
    kept = {name: value for name, value in os.environ.items() if name == "PATH" or name.lower().endswith("_proxy")}
    kept |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "PYENV_"))}
    begun = time.monotonic()
    done = subprocess.run(
        [*map(str, command)], cwd=folder, env=kept | environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return time.monotonic() - begun, done


def size_mb(folder: Path) -> float:
    """Megabytes of the files of a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6


def sizes(site: Path) -> dict[str, float]:
    """Megabytes by what lies in site-packages, shared libraries with their package."""
    result: dict[str, float] = defaultdict(float)
    for entry in site.iterdir():
        name = entry.name.split("-")[0].removesuffix(".libs").removesuffix(".py").lower()
        result[name] += size_mb(entry) if entry.is_dir() else entry.stat().st_size / 1e6
    return dict(sorted(result.items(), key=lambda item: -item[1]))


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pythons", nargs="*", default=[sys.executable])
    parser.add_argument("--packages", action="store_true", help="megabytes of each package, too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="highwater-first-") as made:
        folder = Path(made)
        timed(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, folder=folder)
        (wheel,) = folder.glob("*.whl")
        print("| python | java | install | MB | demo, to its end | with the jars there | MB |")
        print("|---|---|---:|---:|---:|---:|---:|", flush=True)
        for number, named in enumerate(given.pythons):
            python, _, java_home = named.partition("@")
            home = folder / f"home-{number}"
            home.mkdir()
            environment = folder / f"environment-{number}"
            timed(python, "-m", "venv", environment, folder=home, HOME=str(home))
            install, _ = timed(*(environment / "bin" / "pip", "install", "--quiet", wheel), folder=home, HOME=str(home))
            installed_mb = size_mb(environment)
            command = environment / "bin" / "highwater"
            of_home = {"HOME": str(home), "COLUMNS": "100"} | ({"JAVA_HOME": java_home} if java_home else {})
            first, done = timed(command, "demo", "--no-open", folder=home, **of_home)
            if FINDING not in done.stdout:
                sys.exit(f"no {FINDING!r} in\n{done.stdout}")
            again, _ = timed(command, "demo", "--no-open", "--folder", "again", folder=home, **of_home)
            _, examined = timed(command, "doctor", folder=home, **of_home)
            java = next(line.split()[2] for line in examined.stdout.splitlines() if line.startswith("ok    java: "))
            version = timed(python, "--version", folder=home, HOME=str(home))[1].stdout.split()[1]
            print(
                f"| {version} | {java} | {install:.0f} s | {installed_mb:,.0f} | {first:.0f} s | {again:.0f} s "
                f"| {size_mb(environment):,.0f} |",
                flush=True,
            )
            if given.packages:
                (site,) = environment.glob("lib/python*/site-packages")
                for name, package_mb in sizes(site).items():
                    print(f"    {package_mb:8.1f} MB  {name}")


if __name__ == "__main__":
    main()
