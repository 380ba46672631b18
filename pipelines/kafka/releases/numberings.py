"""How distributions of Kafka number what their brokers log as "Kafka version", and which release each is built on.

`AppInfoParser` logs what the build wrote into kafka/kafka-version.properties: Apache's own number, that with a suffix
of the distribution's, or a number of the platform's. The last two are told apart by the suffix alone, so a platform's
number without it is of no known release.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: First two numbers of a release; the first three of those before 1.0, which count one deeper.
Branch = tuple[int, ...]

#: Branches of Apache Kafka that were released (https://kafka.apache.org/downloads). A later one is not known yet.
BRANCHES: frozenset[Branch] = frozenset(
    {
        *((0, 8, minor) for minor in range(3)),
        (0, 9, 0),
        *((0, 10, minor) for minor in range(3)),
        (0, 11, 0),
        *((1, minor) for minor in range(2)),
        *((2, minor) for minor in range(9)),
        *((3, minor) for minor in range(10)),
        *((4, minor) for minor in range(5)),
    }
)

#: Confluent Platform by its first two numbers, and the branch of Apache Kafka that it is built on.
CONFLUENT: Mapping[Branch, Branch] = {
    **{(5, minor): (2, minor) for minor in (3, 4, 5)},
    **{(6, minor): (2, 6 + minor) for minor in (0, 1, 2)},
    **{(7, minor): (3, minor) for minor in range(10)},
    **{(8, minor): (4, minor) for minor in range(5)},
}


@dataclass(frozen=True)
class Numbering:
    """One distribution's way of writing a version."""

    vendor: str  #: whose
    suffix: str  #: pattern of all that follows the number; the first numbering that fits a whole version is taken
    examples: tuple[tuple[str, str], ...]  #: versions as logged, and what is shown of each
    source: str  #: where the numbering is from
    #: branch of Apache Kafka by the platform's own, where the number before the suffix is the platform's
    platform: Mapping[Branch, Branch] | None = field(default=None)


NUMBERINGS: tuple[Numbering, ...] = (
    Numbering(
        "Confluent Platform 5.3 and later",
        r"(?:-\d+)?-(?:ccs|ce)",
        (("5.4.1-ccs", "2.4 (5.4.1-ccs)"), ("6.2.0-ce", "2.8 (6.2.0-ce)"), ("7.6.1-ccs", "3.6 (7.6.1-ccs)")),
        "docs.confluent.io, Supported Versions and Interoperability; images cp-kafka (-ccs) and cp-server (-ce)",
        CONFLUENT,
    ),
    Numbering(
        "Confluent Platform up to 5.2",
        r"-cp\d+",
        (("2.2.1-cp1", "2.2.1 (2.2.1-cp1)"), ("0.11.0.1-cp1", "0.11.0.1 (0.11.0.1-cp1)")),
        "packages.confluent.io/maven; images cp-kafka up to 5.2",
    ),
    Numbering(
        "Cloudera CDK and CDH",
        r"-(?:kafka-|cdh)\d[\w.]*",
        (("2.2.1-kafka-4.1.0", "2.2.1 (2.2.1-kafka-4.1.0)"), ("2.2.1-cdh6.3.2", "2.2.1 (2.2.1-cdh6.3.2)")),
        "docs.cloudera.com, CDK Powered By Apache Kafka Version and Packaging Information; CDH 6 Packaging",
    ),
    Numbering(
        "Hortonworks HDP, Cloudera Runtime, Azure HDInsight",
        r"\.\d+\.\d+\.\d+\.\d+-\d+",
        (
            ("1.1.1.3.1.0.0-78", "1.1.1 (1.1.1.3.1.0.0-78)"),
            ("2.0.0.3.1.4.0-315", "2.0.0 (2.0.0.3.1.4.0-315)"),
            ("2.5.0.7.1.7.0-551", "2.5.0 (2.5.0.7.1.7.0-551)"),
        ),
        "docs.cloudera.com, HDP Release Notes, Component Versions; Cloudera Runtime Component Versions",
    ),
    Numbering(
        "Red Hat AMQ Streams",
        r"\.redhat-\d+",
        (("2.7.0.redhat-00005", "2.7.0 (2.7.0.redhat-00005)"),),
        "maven.repository.redhat.com, org.apache.kafka",
    ),
    Numbering(
        "Amazon MSK and EMR",
        r"[.-](?:amzn[\w.-]*|tiered|kraft)",
        (("2.8.2.tiered", "2.8.2 (2.8.2.tiered)"), ("2.8.1-amzn-0", "2.8.1 (2.8.1-amzn-0)")),
        "docs.aws.amazon.com, Amazon MSK, Supported Apache Kafka versions",
    ),
    Numbering(
        "LinkedIn, Amazon MSK: a number more",
        r"\.\d+",
        (("2.4.1.57", "2.4.1 (2.4.1.57)"), ("3.0.1.0", "3.0.1 (3.0.1.0)")),
        "github.com/linkedin/kafka, releases; Amazon MSK, 2.4.1.1",
    ),
)
