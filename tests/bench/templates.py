"""What releases can log, beside the grammars: which of their templates reads a text that a release has compiled in.

``tests/data/templates.tsv.gz`` has the texts; a class logs under its own name, under those of its subclasses and
listeners, or in the state change log.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from highwater.pipelines.grammars.grammar import Template, find_literal_prefix, shorten_logger
from highwater.pipelines.grammars.templates import SHARED, TEMPLATES, find_known_logger
from tests.bench.overlap import can_match, constants

TABLE = Path(__file__).resolve().parents[1] / "data" / "templates.tsv.gz"

#: Loggers under which a class logs, beside its own name: subclasses, and classes that took its place.
_ALSO = {
    "AbstractFetcherThread": ("ReplicaFetcherThread",),
    "AbstractFetcherManager": ("ReplicaFetcherManager",),
    "ReplicaFetcherManager": ("ReplicaFetcherThread",),
    "AbstractControllerBrokerRequestBatch": ("ControllerBrokerRequestBatch",),
    "DelayedOperation": ("DelayedProduce", "DelayedFetch"),
    "AbstractIndex": ("OffsetIndex", "TimeIndex"),
    "LogManager": ("LogCleaner",),
    "LogCleaner": ("Cleaner", "CleanerThread"),
    "LogCleanerManager": ("LogCleaner",),
    "Cleaner": ("LogCleaner",),
    "UnifiedLog": ("Log", "LogLoader", "LocalLog"),
    "Log": ("UnifiedLog", "LogLoader"),
    "LogLoader": ("UnifiedLog", "Log"),
    "LocalLog": ("UnifiedLog", "Log"),
    "PartitionRegistration": ("ReplicationControlManager",),
}

_STATE_CHANGE = frozenset(
    [
        "Partition",
        "ReplicaManager",
        "MetadataCache",
        "ZkMetadataCache",
        "KafkaController",
        "PartitionStateMachine",
        "ZkPartitionStateMachine",
        "ReplicaStateMachine",
        "ZkReplicaStateMachine",
        "ControllerBrokerRequestBatch",
        "AbstractControllerBrokerRequestBatch",
        "RequestSendThread",
        "ControllerChannelManager",
        "TopicDeletionManager",
    ]
)

#: A prefix that is one value, directly before the text.
_IDENT = re.compile(r"(?:\{\}|%s)(?=[A-Z])")

#: Prefixes that are part of the text where a release has no ``logIdent``.
_PREFIX = re.compile(
    r"\[[^\]]*\][:,]? |Controller (?:%d|\{\}) epoch (?:%d|\{\}) |Broker (?:%d|\{\}) (?=[a-z])"
    r"|Partition (?:\[%s,%d\]|\{\}) on broker (?:%d|\{\}): "
)


class Logged(NamedTuple):
    """One text of a class."""

    logger: str  #: the class, with its package
    first: str  #: first release that has it
    last: str  #: last one
    releases: int  #: how many of the releases that were looked at
    level: str  #: levels, between slashes
    text: str  #: with ``{}`` or a directive for what is filled in


def logged() -> Iterator[Logged]:
    """Texts of all releases."""
    for line in gzip.decompress(TABLE.read_bytes()).decode().splitlines():
        logger, first, last, releases, level, text = line.split("\t")
        plain = text.replace("\\t", "\t").replace("\\n", "\n").replace("\\\\", "\\")
        yield Logged(logger, first, last, int(releases), level, plain)


_WORD = re.compile(r"[A-Za-z]{3,}")


@cache
def _candidates(name: str) -> tuple[Template, ...]:
    outer = name.partition("$")[0]
    names = {name, outer, *_ALSO.get(outer, ())}
    if outer in _STATE_CHANGE:
        names.add("state.change.logger")
    return (
        tuple(
            template
            for template in TEMPLATES
            if any(logger in names or logger.partition("$")[0] == outer for logger in template.loggers)
        )
        + SHARED
    )


def _strange(text: str, template: Template) -> int:
    """How many words of a text are not in a pattern."""
    return len(set(_WORD.findall(text)) - set(_WORD.findall(template.pattern)))


def reader_of(entry: Logged) -> str | None:
    """Id of the template that reads a text, or of the logger that is known as a whole; None if nothing knows it."""
    first_line = entry.text.partition("\n")[0]
    if ident := _IDENT.match(first_line):
        first_line = first_line[ident.end() :]
    for text in dict.fromkeys((first_line, _PREFIX.sub("", first_line, count=1))):
        beginning = constants(text)[0].strip()
        candidates = _candidates(shorten_logger(entry.logger))
        if not beginning:  # a text that begins with a value: so does its template, if there is one
            candidates = tuple(sorted(candidates, key=lambda template: bool(find_literal_prefix(template.pattern))))
        reading = []
        for template in candidates:
            prefix = find_literal_prefix(template.pattern)
            length = min(len(beginning), len(prefix))
            if beginning[:length] == prefix[:length] and can_match(template.pattern, text):
                reading.append(template)
        if reading:  # a value may stand for anything: the one with most of its words
            return min(reading, key=partial(_strange, text)).id
    return find_known_logger(entry.logger)
