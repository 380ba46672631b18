"""Lines of other programs that stand in a log of Kafka's: they carry nothing, and cost no coverage.

Only what one of these forms matches whole lines of counts for one; any other line may be Kafka's, cut or damaged, and
is not understood.
"""

from __future__ import annotations

import re

from pipelines.kafka.raw_record import CONTINUATION, FOREIGN, NO_LAYOUT

#: Lines of other streams of a file.
OTHER_STREAM = f"{FOREIGN}stream"

#: Programs and their lines.
REMARKS: tuple[tuple[str, str], ...] = (
    ("compose", r"Attaching to .*"),
    ("compose", r"(?:Creating|Starting|Recreating|Stopping|Removing|Pulling|Building|Restarting) \S.*"),
    ("compose", r"[\w.-]+: Pulling from .*|(?:Digest: sha256|Status: \w+).*"),
    ("compose", r"[0-9a-f]{12,}: (?:Pull|Download|Verifying|Extracting|Waiting|Already|Pulling|Layer)\b.*"),
    ("compose", r"\S+ exited with code -?\d+.*|Gracefully stopping\.\.\. .*|Aborting on container exit\.\.\."),
    ("compose", r"\s*(?:[✔⠿✘⠋⠙⠹⠸] ?)?(?:Container|Network|Volume|Image) \S+\s+[A-Z]\w+.*|\[\+\] \w+ \d+/\d+.*"),
    ("compose", r'WARN\[\d+\].*|time="[^"]*" level=\w+ .*'),
    ("start script", r"===> .*|uid=\d+\(\S+\) gid=\d+.*|Running in \w+ mode\.\.\.|\+ (?:exec|cd|export|\[\[?) .*"),
    ("start script", r"kafka \d\d:\d\d:\d\d\.\d\d (?:INFO|WARN|ERROR|DEBUG) +==> .*"),
    ("start script", r"STRIMZI_\w+=.*|Preparing (?:truststore|keystore|certificates).*|Starting Kafka with config.*"),
    ("start script", r"(?:Adding|Detected|Kafka metadata\.version|Using) \S.*|Formatting (?:/|metadata directory ).*"),
    ("jvm", r"(?:OpenJDK|Java HotSpot\(TM\)) .*|(?:NOTE: )?Picked up \w+: .*|WARNING: \S.*"),
    ("jvm", r"\[[^\]]{3,40}\](?:\[[^\]]*\])+ .*|#.*"),
    ("logging", r"SLF4J[:(].*|log4j:\w+.*|(?:\S+ \S+ )?(?:main|\S+) (?:ERROR|WARN|INFO) StatusLogger .*"),
    ("logging", r"\[[\w-]+\] (?:TRACE|DEBUG|INFO|WARN|ERROR) [\w.$]+ - .*"),
    ("journal", r"-- (?:Logs begin at|Journal begins at|Boot|Reboot|No entries).*"),
    ("stern", r"[+-] \S+ \u203a \S+.*|(?:stern|kubectl): .*"),
)
_REMARKS = [(name, re.compile(pattern)) for name, pattern in REMARKS]


def program_of(line: str) -> str | None:
    """Whose a line is, if it is another program's."""
    return next((name for name, pattern in _REMARKS if pattern.fullmatch(line)), None)


def looked_into(problem: str | None, text: bytes) -> str | None:
    """The problem of lines that no layout fits; that of another program's lines names it."""
    if problem not in (NO_LAYOUT, CONTINUATION):
        return problem
    lines = [line for line in text.decode(errors="replace").split("\n") if line.strip()]
    programs = [program_of(line.rstrip("\r ")) for line in lines[:1000]]
    if len(lines) > 1000 or not programs or None in programs:
        return problem
    return f"{FOREIGN}{programs[0]}".replace(" ", "_")
