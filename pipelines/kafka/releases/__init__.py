"""Which release of Apache Kafka a logged version is built on: a table of numberings beside one engine. Pure.

Who compares versions asks `pipelines.kafka.versions`, `pipelines.controllers.rules` or `pipelines.rules.known_bugs`;
those ask `release_of` here.
"""

from __future__ import annotations

from highwater.pipelines.kafka.releases.numberings import NUMBERINGS, Branch, Numbering
from highwater.pipelines.kafka.releases.release import (
    Release,
    Version,
    Versioned,
    is_named_at_start,
    release_of,
    shown,
    value_of,
)

__all__ = [
    "NUMBERINGS",
    "Branch",
    "Numbering",
    "Release",
    "Version",
    "Versioned",
    "is_named_at_start",
    "release_of",
    "shown",
    "value_of",
]
