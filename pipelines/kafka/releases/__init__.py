"""The release of Apache Kafka that a logged version is built on. Pure.

`AppInfoParser` logs what the build wrote into kafka/kafka-version.properties: Apache's own number, this number with a
suffix of the distribution, or a number of the platform. Only the suffix distinguishes the last two.
`numberings.toml` holds the numberings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TypeVar

import msgspec

#: First two numbers of a release. The first three numbers of releases before 1.0, which count one deeper.
Branch = tuple[int, ...]


class Numbering(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How one Kafka distribution writes its versions."""

    vendor: str  #: name of the distribution
    suffix: str  #: pattern of all that follows the number. The first numbering that fits a whole version is used.
    examples: tuple[tuple[str, str], ...]  #: versions as logged, and their titles
    source: str  #: where the numbering is documented
    #: branch of Apache Kafka by the platform's branch, if the number before the suffix is the platform's
    platform: Mapping[str, str] | None = None

    def find_branch(self, branch: Branch) -> Branch | None:
        """Return the Apache Kafka branch for a branch of the platform. None if unknown."""
        known = (self.platform or {}).get(".".join(map(str, branch)))
        return None if known is None else _parse_numbers(known)


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    branches: tuple[str, ...]
    numberings: tuple[Numbering, ...]


def _parse_numbers(text: str) -> Branch:
    return tuple(map(int, text.split(".")))


_TABLE = msgspec.toml.decode(files(__package__).joinpath("numberings.toml").read_bytes(), type=_Table)
#: Branches of Apache Kafka that were released. A later branch is not known yet.
BRANCHES: frozenset[Branch] = frozenset(map(_parse_numbers, _TABLE.branches))
NUMBERINGS: tuple[Numbering, ...] = _TABLE.numberings

Version = tuple[int, int, int]
T = TypeVar("T")

#: Above the last number of any patch release.
_LAST_PATCH = 999
_NUMBER = r"(?P<number>0\.\d{1,2}\.\d{1,2}(?:\.\d{1,2})?|[1-9]\.\d{1,2}(?:\.\d{1,2})?+)"
#: Apache's own suffixes: of a release or its candidate, of a build before it, and of inter.broker.protocol.version,
#: which names a branch (2.7-IV2, 0.9.0.X). The last one is any suffix after a separator.
_RELEASED, _BEFORE, _BRANCH, _OTHER = r"(?:-rc\d+)?", "-SNAPSHOT", r"(?:-IV\d+|\.X)", r"[.+_-].*"
_PATTERNS = [
    (re.compile(f"{_NUMBER}(?:{suffix})"), numbering)
    for suffix, numbering in (
        *((suffix, None) for suffix in (_RELEASED, _BEFORE, _BRANCH)),
        *((numbering.suffix, numbering) for numbering in NUMBERINGS),
        (_OTHER, None),
    )
]
#: Characters of a version, at most.
_TEXT_CHARS_MAX = 100
#: A broker logs its version, its commit and its start time, and in the next call that it has started
#: (``KafkaServer.startup``, ``KafkaRaftServer.startup``).
_STARTED_WITHIN_US = 5_000_000


@dataclass(frozen=True)
class Release:
    """The Apache Kafka release of a logged version.

    Distributions include fixes of later patch releases, and a platform's number does not show its first patch release.
    So only a range within a branch is known.
    """

    text: str  #: as logged
    name: str  #: known part of the release: ``2.8.2``, ``2.4``
    oldest: Version  #: the first release that it can be
    newest: Version  #: the last one
    likely: Version  #: the one to predict with
    vendor: str | None = None  #: distribution of the numbering; None for Apache's own and for an unknown suffix

    @property
    def title(self) -> str:
        """Return the name of the release, and the logged text in brackets if it differs."""
        return self.name if self.name == self.text else f"{self.name} ({self.text})"


@dataclass(frozen=True)
class Versioned:
    """Base of objects that depend only on the Kafka version."""

    version: Version


@lru_cache(maxsize=256)
def release_of(text: str | None) -> Release | None:
    """Return the Apache Kafka release of a logged version. None if unknown.

    Args:
        text: as `AppInfoParser` logs it, or a protocol version such as ``2.7-IV2``.
    """
    if text is None or len(text) > _TEXT_CHARS_MAX:
        return None
    for pattern, numbering in _PATTERNS:
        match = pattern.fullmatch(text)
        if match is not None:
            return _make_release(text, match["number"], numbering)
    return None


def format_version(text: str | None) -> str | None:
    """Return a version for people: ``2.8.2``, ``2.4 (5.4.1-ccs)``, ``unknown (9.9)``. None without a version."""
    release = release_of(text)
    return release.title if release else f"unknown ({text})" if text else None


def evaluate_rule(text: str | None, rule: Callable[[Version], T]) -> T | None:
    """Return `rule` of a version. None if the release is unknown, or if its possible releases give different values."""
    release = release_of(text)
    if release is None:
        return None
    oldest = rule(release.oldest)
    return oldest if release.newest == release.oldest or rule(release.newest) == oldest else None


def is_named_at_start(named_us: int, started_us: int) -> bool:
    """Return True if a version logged at `named_us` is of the broker that started at `started_us`.

    `AppInfoParser` logs the version of every program, and of every client within a broker.
    """
    return 0 <= started_us - named_us <= _STARTED_WITHIN_US


def _make_release(text: str, number: str, numbering: Numbering | None) -> Release | None:
    numbers = tuple(map(int, number.split(".")))
    branch: Branch | None = numbers[: 2 if numbers[0] else 3]
    vendor = numbering.vendor if numbering is not None else None
    is_platforms = numbering is not None and numbering.platform is not None
    if numbering is not None and numbering.platform is not None:
        branch = numbering.find_branch(numbers[:2])
    if branch is None or branch not in BRANCHES:
        return None
    suffix = text.removeprefix(number)
    first, last = _make_version(branch, 0), _make_version(branch, _LAST_PATCH)
    if is_platforms or len(numbers) == len(branch) or re.fullmatch(_BRANCH, suffix):
        # A platform's patch releases follow Apache's, so the newest is nearer.
        name = number if branch == numbers else ".".join(map(str, branch))
        return Release(text, name, first, last, last, vendor)
    named = _make_version(branch, numbers[-1])
    if re.fullmatch(_BEFORE, suffix):
        return Release(text, number, _find_previous(named), named, named, vendor)
    return Release(text, number, named, named if re.fullmatch(_RELEASED, suffix) else last, named, vendor)


def _make_version(branch: Branch, patch: int) -> Version:
    """Return the version of a branch and a patch number. Before 1.0 rules do not differ by patch release."""
    return (branch[0], branch[1], branch[2] if len(branch) == 3 else patch)


def _find_previous(release: Version) -> Version:
    """Return the previous release: the patch before, or the first release of the branch before."""
    major, minor, patch = release
    if patch and major:
        return major, minor, patch - 1
    return max((first for branch in BRANCHES if (first := _make_version(branch, 0)) < release), default=release)
