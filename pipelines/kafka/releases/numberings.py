"""How distributions of Kafka number what their brokers log as "Kafka version": the table of `numberings.toml`.

`AppInfoParser` logs what the build wrote into kafka/kafka-version.properties: Apache's own number, this number with a
suffix of the distribution, or a number of the platform. The suffix alone tells the last two apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

import msgspec

#: First two numbers of a release. The first three numbers of releases before 1.0, which count one deeper.
Branch = tuple[int, ...]


class Numbering(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One distribution's way of writing a version."""

    vendor: str  #: name of the distribution
    suffix: str  #: pattern of all that follows the number. The first numbering that fits a whole version is used.
    examples: tuple[tuple[str, str], ...]  #: versions as logged, and their titles
    source: str  #: where the numbering is documented
    #: branch of Apache Kafka by the platform's branch, if the number before the suffix is the platform's
    platform: Mapping[str, str] | None = None

    def branch_of(self, branch: Branch) -> Branch | None:
        """Return the branch of Apache Kafka of a platform's branch. None if unknown."""
        known = (self.platform or {}).get(".".join(map(str, branch)))
        return None if known is None else _numbers(known)


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    branches: tuple[str, ...]
    numberings: tuple[Numbering, ...]


def _numbers(text: str) -> Branch:
    return tuple(map(int, text.split(".")))


_TABLE = msgspec.toml.decode(files(__package__).joinpath("numberings.toml").read_bytes(), type=_Table)
#: Branches of Apache Kafka that were released. A later branch is not known yet.
BRANCHES: frozenset[Branch] = frozenset(map(_numbers, _TABLE.branches))
NUMBERINGS: tuple[Numbering, ...] = _TABLE.numberings
