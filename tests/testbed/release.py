"""What differs between Kafka's releases when one is to be run: what to fetch, and how to start it on today's Java."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import total_ordering

ZOOKEEPER = "zookeeper"
KRAFT = "kraft"
#: One ZooKeeper server serves the clients of all releases; 3.4 does not run with what replaced Log4j 1.2.
ZOOKEEPER_SERVER = "org.apache.zookeeper:zookeeper:3.5.9"
LOG4J_1 = ("ch.qos.reload4j:reload4j:1.2.25", "org.slf4j:slf4j-reload4j:1.7.36")
LOG4J_2 = tuple(
    f"org.apache.logging.log4j:{name}:2.24.3" for name in ("log4j-core", "log4j-slf4j-impl", "log4j-1.2-api")
)
#: Replaced by the above, where a release depends on them.
EXCLUDED = ("log4j:log4j", "org.slf4j:slf4j-log4j12")
#: Maven Central has no command line tools of later releases; an older tool speaks to a newer cluster.
LAST_TOOLS = "4.3.1"


@total_ordering
@dataclass(frozen=True)
class Release:
    """A release of Kafka, such as 3.6.2 or 0.10.2.2."""

    numbers: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Release:
        """A release by its name.

        Raises:
            ValueError: it is no name of a release that can be run, the first of which is 0.10.0.0.
        """
        if not re.fullmatch(r"\d+(?:\.\d+){2,3}", text):
            raise ValueError(f"{text!r} is no release of Kafka; write it like 3.6.2")
        release = cls(tuple(map(int, text.split("."))))
        if release < (0, 10):
            raise ValueError(f"{text} is older than 0.10.0.0, the first that today's clients can talk to")
        return release

    def __str__(self) -> str:
        return ".".join(map(str, self.numbers))

    def __lt__(self, other: Release | tuple[int, ...]) -> bool:
        return self.numbers < (other.numbers if isinstance(other, Release) else other)

    @property
    def modes(self) -> tuple[str, ...]:
        """Who may hold the cluster's metadata, the usual one first; KRaft is for production since 3.3 (KIP-833)."""
        if self < (3, 3):
            return (ZOOKEEPER,)
        return (KRAFT, ZOOKEEPER) if self < (4,) else (KRAFT,)

    @property
    def scala(self) -> str:
        """Scala of the download that Kafka recommends: collections print differently in each."""
        return "2.11" if self < (2, 1) else "2.12" if self < (2, 6) else "2.13"

    @property
    def artifacts(self) -> tuple[str, ...]:
        """What Maven has to resolve to run a broker."""
        wanted = [f"org.apache.kafka:kafka_{self.scala}:{self}"]
        if self >= (3, 3) and self.tools == self:
            wanted.append(f"org.apache.kafka:kafka-tools:{self}")
        if self < (2,):  # java.xml.bind left Java with 11
            wanted.append("javax.xml.bind:jaxb-api:2.3.1")
        elif self < (2, 4):  # ZooKeeper 3.4.11 to 3.4.14, 3.5.5 to 3.5.7 cannot connect on Java 14 and later
            wanted.append("org.apache.zookeeper:zookeeper:3.4.10")
        elif self < (2, 6):
            wanted.append("org.apache.zookeeper:zookeeper:3.5.9")
        return (*wanted, *(LOG4J_1 if self < (4,) else LOG4J_2))

    @property
    def excluded(self) -> tuple[str, ...]:
        """What must not come along."""
        # 4.4.0 depends on an artifact that Maven Central does not have.
        return EXCLUDED if self < (4, 4) else (*EXCLUDED, "org.apache.kafka:kafka-tools-api")

    @property
    def tools(self) -> Release:
        """The release whose command line tools are used with this one."""
        return self if self < (4, 4) else Release.parse(LAST_TOOLS)

    @property
    def java_options(self) -> tuple[str, ...]:
        """What old releases need on Java 17."""
        if self >= (1,):
            return ("-Dzookeeper.jmx.log4j.disable=true",)
        packages = ("java.nio", "sun.nio.ch", "jdk.internal.ref")
        opened = tuple(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in packages)
        return ("-Dzookeeper.jmx.log4j.disable=true", *opened)

    @property
    def protocol(self) -> str:
        """As versions of protocol and metadata are written: 0.10.2, 2.8."""
        return ".".join(map(str, self.numbers[: 3 if self < (1,) else 2]))

    @property
    def has_transactions(self) -> bool:
        """KIP-98."""
        return self >= (0, 11)

    @property
    def request_level(self) -> str:
        """The level at which the request log tells offsets."""
        return "TRACE" if self < (0, 11) else "DEBUG"


def mode_for(releases: Sequence[Release], allowed: Sequence[str], wanted: str = "") -> str:
    """The mode in which to run releases one after the other: the usual one of the first that all have.

    Args:
        releases: in their order.
        allowed: modes that come into question.
        wanted: only this one; empty: any.

    Raises:
        ValueError: there is none.
    """
    for mode in releases[0].modes:
        if mode in allowed and wanted in ("", mode) and all(mode in release.modes for release in releases):
            return mode
    modes = wanted or " or ".join(allowed)
    raise ValueError(f"{' and '.join(map(str, releases))} cannot be run like this in mode {modes}")
