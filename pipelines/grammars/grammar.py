"""The machinery of the text grammars: templates, the prefix of a line, dispatch by logger.

A Kafka log line is a constant text with values in it, and the class that logs decides which texts are possible. So a
grammar belongs to a logger. Within it the first characters of the text, after the ``[...]`` with the name of the
component, select a few candidate templates. These first characters are taken from the template's own pattern, so guards
and patterns cannot diverge.

Pure: no Spark, no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from operator import itemgetter
from typing import NamedTuple

from highwater.pipelines.grammars.record import KNOWN, TYPED, UNPARSED, LineFact, LogRecord, Parsed
from highwater.pipelines.grammars.values import i32, parse_partition

#: Characters of a text that select its candidates. Long enough to distinguish ``Shrinking`` and ``Skipping``, short
#: enough that nearly every template starts with that many constant characters.
_KEY = 6

#: Distinct prefixes remembered per logger. A broker has some per partition; garbage must not fill the memory.
_MAX_CONTEXTS = 20_000


#: Lines that may follow the first line of a record: settings, or a stack trace.
_LINES_BEHIND = re.compile(r"\n(?:\s|\Z|(?:Caused by: )?[\w$.]+(?::|\n|\Z))", re.ASCII)

#: Some texts end in a blank, where a list that could follow is empty.
_BLANKS = r"[ \t\r]*"


class LogIdent(NamedTuple):
    """The ``[...]`` at the start of a line (Kafka's ``logIdent``)."""

    topic: str | None = None  #: topic, where the component is one partition's
    partition: int | None = None  #: its index
    node: int | None = None  #: broker or controller that logs
    epoch: int | None = None  #: controller epoch
    leader: int | None = None  #: broker that a fetcher fetches from
    fetcher_id: int | None = None  #: its thread
    text: str = ""  #: the prefix as logged, without brackets
    is_read: bool = True  #: False if it names something that was not read: such a line has no facts
    log_dir: str | None = None  #: directory of the log that a line of the log layer is about

    def owner(self) -> tuple[str, int]:
        """Return the partition that the prefix names.

        Raises:
            ValueError: the prefix names none.
        """
        if self.topic is None or self.partition is None:
            raise ValueError("the prefix names no partition")
        return self.topic, self.partition


NO_CONTEXT = LogIdent()

Facts = Callable[["re.Match[str]", LogIdent, LogRecord], tuple[LineFact, ...]]


class Template(NamedTuple):
    """One message text of Kafka."""

    id: str  #: stable name; lines are counted by it
    #: matches the whole first line after its ``[...]``, but for trailing blanks, without alternatives at top level
    pattern: str
    source: str  #: class and method of Kafka, and the versions where they are not all
    facts: Facts | None = None  #: what the line becomes; None for a line that carries nothing for the audit
    loggers: tuple[str, ...] = ()  #: simple names of the classes that log it (see `shorten_logger`)


def shorten_logger(logger: str) -> str:
    """Return the name by which templates are declared: classes moved between packages, hardly ever between names.

    ``org.apache.kafka.storage.internals.log.UnifiedLog`` and ``kafka.log.UnifiedLog$`` are ``UnifiedLog``. An inner
    class keeps its outer one (``LogCleaner$CleanerThread``). A name in lower case is not a class and is not shortened
    (``state.change.logger``).
    """
    last = logger.rpartition(".")[2]
    if not last[:1].isupper():
        return logger
    return last.rstrip("$")


#: One element of a pattern: an escape, a class, or a character; a group is found by its brackets.
_ELEMENT = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_REPEATED = re.compile(r"(?:[*+?]|\{\d*+,?+\d*+\})[?+]?")


def split_atoms(pattern: str) -> Iterator[tuple[str, bool]]:
    """Yield (top-level element of a regular expression with its repetition, True if it is one literal character)."""
    index = 0
    while index < len(pattern):
        end, depth = index, 0
        while True:
            element = _ELEMENT.match(pattern, end)
            assert element is not None
            end = element.end()
            depth += (element[0] == "(") - (element[0] == ")")
            if depth <= 0:
                break
        repeated = _REPEATED.match(pattern, end)
        end = repeated.end() if repeated else end
        atom = pattern[index:end]
        is_character = not atom[1].isalnum() if len(atom) == 2 and atom[0] == "\\" else len(atom) == 1
        yield atom, is_character and atom not in _SPECIAL
        index = end


_SPECIAL = frozenset(".^$|")


def find_literal_prefix(pattern: str) -> str:
    """Return the constant characters with which every match of a pattern starts."""
    return "".join(atom[-1] for atom, _ in takewhile(itemgetter(1), split_atoms(pattern)))


#: Part of a prefix that holds a value, or that lacks one.
_VALUE = re.compile(r"[=\d]| $", re.ASCII)

_PARTITION_CONTEXT = re.compile(r"Partition (\S+-\d+) broker=(-?\d+)", re.ASCII)
_LOG_CONTEXT = re.compile(r"(?:\w*Log|LogLoader) partition=(\S+-\d+), dir=((?:/|[A-Za-z]:\\).*)", re.ASCII)
_NAMED_PARTITION_CONTEXT = re.compile(
    r"(?:LeaderEpochCache |ProducerStateManager partition=|RaftLog partition=|RemoteLogManager=\d+ partition=[\w-]+:)"
    r"(\S+-\d+)",
    re.ASCII,
)
_FETCHER_CONTEXT = re.compile(r"ReplicaFetcher\S* replicaId=(\d+), leaderId=(\d+), fetcherId=(\d+)", re.ASCII)
_OLD_FETCHER_CONTEXT = re.compile(r"ReplicaFetcherThread-(\d+)-(\d+)", re.ASCII)
_NODE_CONTEXT = re.compile(
    r"(?:[A-Za-z]+ )+(?:(?:id|brokerId|controllerId|nodeId|broker)=(-?\d+)(?: epoch=(-?\d+))?"
    # KafkaServer, while it migrates to KRaft.
    r"(?: name=\S+)?(?: isZkBroker=(?:true|false))?"
    r"|on(?: [Cc]ontroller| [Bb]roker)? (-?\d+))|(?:[A-Za-z]+ )*(?:Controller|Kafka Server|Deletion Manager) (-?\d+)"
    r"|delete-topics-thread-(-?\d+)",
    re.ASCII,
)

#: Prefixes without brackets, up to 0.11: ``Partition [t,0] on broker 1: ``, ``Broker 1 ``, ``Controller 1 epoch 2 ``.
_BARE_CONTEXT = re.compile(
    r"Partition (?P<partition>\[[\w.-]+,\d+\]) on broker (?P<broker>-?\d+): "
    r"|Broker (?P<node>-?\d+) (?=[a-z])"
    r"|Controller (?P<controller>-?\d+) epoch (?P<epoch>-?\d+) (?=[a-z])",
    re.ASCII,
)


def parse_context(text: str) -> LogIdent:
    """Read the inside of a line's ``[...]``. An unknown prefix is kept as text only."""
    try:
        if match := _PARTITION_CONTEXT.fullmatch(text):
            topic, partition = parse_partition(match[1])
            return LogIdent(topic, partition, i32(match[2]), text=text)
        if match := _LOG_CONTEXT.fullmatch(text):
            topic, partition = parse_partition(match[1])
            return LogIdent(topic, partition, text=text, log_dir=match[2])
        if match := _NAMED_PARTITION_CONTEXT.fullmatch(text):
            topic, partition = parse_partition(match[1])
            return LogIdent(topic, partition, text=text)
        if match := _FETCHER_CONTEXT.fullmatch(text):
            return LogIdent(node=i32(match[1]), leader=i32(match[2]), fetcher_id=i32(match[3]), text=text)
        if match := _OLD_FETCHER_CONTEXT.fullmatch(text):
            return LogIdent(leader=i32(match[2]), fetcher_id=i32(match[1]), text=text)
        if match := _NODE_CONTEXT.fullmatch(text):
            node = match[1] or match[3] or match[4] or match[5]
            return LogIdent(node=i32(node), epoch=i32(match[2]) if match[2] else None, text=text)
    except ValueError:
        pass  # a number beyond its type
    return LogIdent(text=text, is_read=_VALUE.search(text) is None)


def parse_bare_context(message: str) -> tuple[LogIdent, int]:
    """Return the prefix without brackets of a message, and the position after it."""
    match = _BARE_CONTEXT.match(message)
    if match is None:
        return NO_CONTEXT, 0
    try:
        if match["partition"]:
            topic, partition = parse_partition(match["partition"])
            return LogIdent(topic, partition, i32(match["broker"]), text=match[0].strip()), match.end()
        if match["node"]:
            return LogIdent(node=i32(match["node"]), text=match[0].strip()), match.end()
        return LogIdent(node=i32(match["controller"]), epoch=i32(match["epoch"]), text=match[0].strip()), match.end()
    except ValueError:
        return NO_CONTEXT, 0


_Entry = tuple[Callable[[str, int, int], "re.Match[str] | None"], Facts | None, Parsed]


def _compile(template: Template) -> _Entry:
    """Return a template's matcher, function for rows, and result for a line without rows."""
    matcher = re.compile(template.pattern + _BLANKS, re.ASCII).fullmatch
    return matcher, template.facts, Parsed(template.id, KNOWN)


class Grammar:
    """The compiled templates of one logger."""

    __slots__ = ("_bare", "_contexts", "_entries", "_rest")

    def __init__(self, templates: Iterable[Template], bare: bool = False) -> None:
        """Compile the templates. If several match a line, the first declared one is used.

        Args:
            templates: of this logger, then those that any logger may write.
            bare: True if old versions print the prefix without brackets.
        """
        self._bare = bare
        self._contexts: dict[str, LogIdent] = {}
        compiled = [(find_literal_prefix(template.pattern), _compile(template)) for template in templates]
        # A text is looked up by its first characters; templates that start with a value are candidates for all.
        self._rest = tuple(entry for prefix, entry in compiled if len(prefix) < _KEY)
        keys = {prefix[:_KEY] for prefix, _ in compiled if len(prefix) >= _KEY}
        self._entries = {
            key: tuple(entry for prefix, entry in compiled if len(prefix) < _KEY or prefix[:_KEY] == key)
            for key in keys
        }

    def parse(self, record: LogRecord) -> Parsed | None:
        """Parse a record; None if no template knows it. Never raises."""
        message = record.message
        start = 0
        context = NO_CONTEXT
        if message[:1] == "[":
            close = message.find("]")
            if close > 0:
                text = message[1:close]
                known_context = self._contexts.get(text)
                if known_context is None:
                    known_context = parse_context(text)
                    if len(self._contexts) < _MAX_CONTEXTS:
                        self._contexts[text] = known_context
                context = known_context
                start = close + 1
                if message[start : start + 1] in (":", ","):
                    start += 1
                if message[start : start + 1] == " ":
                    start += 1
        elif self._bare:
            context, start = parse_bare_context(message)
        end = message.find("\n", start)
        is_whole = end < 0 or _LINES_BEHIND.match(message, end) is not None
        if end < 0:
            end = len(message)
        for fullmatch, facts, known in self._entries.get(message[start : start + _KEY], self._rest):
            match = fullmatch(message, start, end)
            if match is None:
                continue
            if facts is None:
                return known
            if not is_whole:
                return Parsed("", UNPARSED, (), "no_grammar", f"{known.template}: other lines behind it")
            if not context.is_read:
                return Parsed("", UNPARSED, (), "no_grammar", f"{known.template}: prefix {context.text[:80]}")
            try:
                rows = facts(match, context, record)
            except Exception as error:  # a line from anywhere must not stop the run: it is kept, with the reason
                return Parsed("", UNPARSED, (), "no_grammar", f"{known.template}: {error}")
            return Parsed(known.template, TYPED, rows) if rows else known
        return None
