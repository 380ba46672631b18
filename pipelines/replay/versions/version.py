"""A version of Kafka, as numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

Version = tuple[int, int, int]


def parse_version(text: str | None) -> Version | None:
    """``"3.9.1"`` or ``"2.8.2-SNAPSHOT"`` as numbers; None where it is no version."""
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", text or "")
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


@dataclass(frozen=True)
class Versioned:
    """Something that depends on the version of Kafka alone."""

    version: Version
