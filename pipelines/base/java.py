"""Which Java Spark would start, and whether it is new enough. No Spark needed to ask."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

JAVA_MINIMUM = 17
JAVA_REMEDY = f"install Java {JAVA_MINIMUM} or later, and set JAVA_HOME or PATH to it"


def find_java() -> Path | None:
    """The `java` that Spark's scripts pick: that of JAVA_HOME if it is set, else the first on PATH."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        return java if os.access(java, os.X_OK) else None
    path = shutil.which("java")
    return Path(path) if path else None


def java_release(java: Path) -> int | None:
    """Feature release (8, 11, 17, ...) of a `java`, None if it does not say."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_release(answer.stderr + answer.stdout)


def parse_release(text: str) -> int | None:
    """Feature release in what ``java -version`` prints: ``"17.0.15"`` is 17, ``"1.8.0_402"`` is 8."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


def java_problem() -> str | None:
    """What is wrong with this machine's Java; None if nothing is."""
    java = find_java()
    if java is None:
        home = os.environ.get("JAVA_HOME")
        return f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no java on PATH"
    release = java_release(java)
    if release is None:
        return f"{java} cannot be run, or does not tell its version"
    if release < JAVA_MINIMUM:
        return f"{java} is Java {release}; Spark 4 needs {JAVA_MINIMUM} or later"
    return None


if __name__ == "__main__":  # `make` asks before anything is installed
    problem = java_problem()
    sys.exit(f"{problem}; {JAVA_REMEDY}" if problem else 0)
