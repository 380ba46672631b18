"""The Java that Spark would start, and its release. Needs no Spark."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from glob import glob
from pathlib import Path

from highwater.pipelines.base.errors import EnvironmentProblem

JAVA_MINIMUM = 17
#: Where systems, package managers and tools put a Java that is not on PATH.
USUAL_PLACES = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/*jdk*",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
)
#: How a Java is installed, by the name of a system or of one that it is like.
_INSTALLERS = {
    "darwin": "brew install openjdk@17",
    "debian": "apt install openjdk-17-jre-headless",
    "ubuntu": "apt install openjdk-17-jre-headless",
    "fedora": "dnf install java-17-openjdk-headless",
    "rhel": "dnf install java-17-openjdk-headless",
    "amzn": "dnf install java-17-amazon-corretto-headless",
    "suse": "zypper install java-17-openjdk-headless",
    "alpine": "apk add openjdk17-jre-headless",
    "arch": "pacman -S jre17-openjdk-headless",
}


def find_java() -> Path | None:
    """Return the `java` to start: from JAVA_HOME if set, else the first on PATH, else one in a usual folder.

    A `java` on PATH that is too old is skipped if a suitable one exists elsewhere. None if none is found.
    """
    if home := os.environ.get("JAVA_HOME"):
        java = Path(home) / "bin" / "java"
        return java if os.access(java, os.X_OK) else None
    path = shutil.which("java")
    if path is not None and (_read_release(Path(path)) or JAVA_MINIMUM) >= JAVA_MINIMUM:
        return Path(path)
    elsewhere = (Path(java) for place in USUAL_PLACES for java in glob(os.path.expanduser(f"{place}/bin/java")))
    usual = [java for java in elsewhere if (_read_release(java) or 0) >= JAVA_MINIMUM]
    # The oldest that will do is the one that Spark was tested with.
    return min(usual, key=lambda java: (_read_release(java), java), default=Path(path) if path else None)


def use_java() -> None:
    """Set JAVA_HOME so that Spark's scripts start the `java` of `find_java`.

    Raises:
        EnvironmentProblem: Java is missing or known to be too old.
    """
    java = find_java()
    # Where no file shows its release, only starting it would, which is done when starting Spark fails.
    if java is None or (_read_release(java) or JAVA_MINIMUM) < JAVA_MINIMUM:
        raise EnvironmentProblem(describe_java_problem() or "there is no java", describe_java_remedy())
    if "JAVA_HOME" not in os.environ and str(java) != shutil.which("java"):
        os.environ["JAVA_HOME"] = str(java.parent.parent)


def describe_java_remedy() -> str:
    """Return how to install a suitable `java` on this system."""
    how = next((f" ({_INSTALLERS[name]})" for name in _identify_system() if name in _INSTALLERS), "")
    return f"install Java {JAVA_MINIMUM} or later{how}, or set JAVA_HOME to one"


def _identify_system() -> list[str]:
    """Return names of this operating system, the most exact one first, for example ``ubuntu``."""
    if sys.platform == "darwin":
        return ["darwin"]
    try:
        of_system = platform.freedesktop_os_release()
    except OSError:
        return []
    return [of_system.get("ID", ""), *of_system.get("ID_LIKE", "").split()]


def find_java_release(java: Path) -> int | None:
    """Return the feature release (8, 11, 17, ...) of a `java`; None if unknown."""
    if (noted := _read_release(java)) is not None:
        return noted
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_release(answer.stderr + answer.stdout)


def _read_release(java: Path) -> int | None:
    """Return the release in the installation's release file, without starting Java. None without the file."""
    try:
        text = (java.resolve().parent.parent / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.MULTILINE)
    return int(match.group(1)) if match else None


def parse_release(text: str) -> int | None:
    """Return the feature release that ``java -version`` prints: ``"17.0.15"`` is 17, ``"1.8.0_402"`` is 8."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


def describe_java_problem() -> str | None:
    """Return the problem with this machine's Java; None if it is suitable."""
    java = find_java()
    if java is None:
        home = os.environ.get("JAVA_HOME")
        return f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no Java on PATH or in a usual place"
    release = find_java_release(java)
    if release is None:
        return f"{java} cannot be run, or does not print its version"
    if release < JAVA_MINIMUM:
        return f"{java} is Java {release}; Spark 4 needs {JAVA_MINIMUM} or later"
    return None


if __name__ == "__main__":  # `make` asks before anything is installed
    problem = describe_java_problem()
    sys.exit(f"{problem}; {describe_java_remedy()}" if problem else 0)
