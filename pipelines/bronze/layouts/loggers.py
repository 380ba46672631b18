"""Resolves the logger of a line that does not contain its full name.

A simple or abbreviated name may mean several classes of ``kafka_classes.toml``. If the difference matters, the text of
the line decides: one of the classes has a template that matches. Otherwise the line has no logger and is not parsed.
The same holds for the three loggers that are not classes and whose simple name is ``logger``, and for lines without any
name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files

import msgspec

from highwater.pipelines.bronze.identity import OTHER, kind_of_logger
from highwater.pipelines.bronze.layout import CACHE_MAX
from highwater.pipelines.grammars.facts import REQUEST_LOGGER
from highwater.pipelines.grammars.grammar import find_literal_prefix, parse_bare_context
from highwater.pipelines.grammars.record import UNPARSED, LogRecord, Parsed
from highwater.pipelines.grammars.request_log import parse_request
from highwater.pipelines.grammars.templates import SHARED, TEMPLATES, find_known_logger
from highwater.pipelines.grammars.text_log import parse_own_text

STATE_CHANGE = "state.change.logger"
#: ``%c{1}`` of these is ``logger``.
_NO_CLASSES = (STATE_CHANGE, REQUEST_LOGGER, "kafka.authorizer.logger")
#: Lines of a thread, whatever its class. Their logger cannot be resolved, and they are of no interest.
_THREAD = "org.apache.kafka.server.util.ShutdownableThread"
#: Callers that location patterns (``%C``, ``%F``) print for all lines of Scala's classes. They identify no logger.
_TRAITS = frozenset(("Logging", "Logging$class", "LoggerAdapter", "ContextualLogging"))
_KEY = 6
#: Parts of a template's pattern that are not constant text, and words of the constant text.
_OPEN = re.compile(r"\\.|\[[^\]]*\]|\([^()]*\)|\(|\)")
#: AbstractConfig.logAll: a configuration prints the name of its class.
_SETTINGS = re.compile(r"(\w+Config) values:")
_METHOD = re.compile(r"((?:[\w$]+\.)*[A-Z][\w$]*)\.(?:[a-z_][\w$]*|<\w+>)")
_WORDS = re.compile(r"[A-Za-z]{3,}")
#: The class that a context begins with, as in ``[ReplicaFetcherManager on broker 2]``.
_COMPONENT = re.compile(r"\[([A-Z]\w+) (?:on |\w+=)")

_PACKAGES = msgspec.toml.decode(files(__package__).joinpath("kafka_classes.toml").read_bytes(), type=dict[str, str])
_by_simple: dict[str, list[str]] = defaultdict(list)
for _package, _classes in _PACKAGES.items():
    for _class in _classes.split():
        _by_simple[_class].append(_package)


def candidates(name: str) -> list[str]:
    """Return full logger names that a name may mean. It may be full, its last parts or with abbreviated packages."""
    name = without_method(name).removesuffix(".scala").removesuffix(".java")
    before, _, simple = name.rpartition(".")
    parts = before.split(".") if before else []
    if simple == "logger":
        return [full for full in _NO_CLASSES if _fits(parts, full.split(".")[:-1])]
    packages = _by_simple.get(simple.partition("$")[0], [])
    return [f"{package}.{simple}" for package in packages if _fits(parts, package.split("."))]


def without_method(name: str) -> str:
    """Return the class of a caller that is printed with its method, for example ``kafka.utils.Logging$class.info``."""
    found = _METHOD.fullmatch(name)
    return found[1] if found else name


def _fits(parts: list[str], package: list[str]) -> bool:
    if not parts or package[-len(parts) :] == parts:
        return True
    return len(parts) == len(package) and all(
        long.startswith(short) for short, long in zip(parts, package, strict=True)
    )


def is_kafka(name: str) -> bool:
    """Return True if a name, in any form, is one of Kafka's loggers."""
    return bool(candidates(name)) or kind_of_logger(name) != OTHER


@lru_cache(maxsize=CACHE_MAX)
def could_log(name: bytes) -> bool:
    """Return True if a name can be a logger: a logger of Kafka, or a class with a package.

    Throwables and Java's own classes are not loggers.
    """
    text = name.decode(errors="replace").partition(":")[0]
    if text in _NO_CLASSES or candidates(text):
        return True
    package, _, simple = text.rpartition(".")
    is_class = simple[:1].isupper() and not simple.endswith(("Exception", "Error"))
    return is_class and bool(package) and not package.startswith("java.")


def is_trait(name: str) -> bool:
    """Return True for a caller that location patterns print for every class, such as ``kafka.utils.Logging``."""
    name = without_method(name)
    return name.rpartition(".")[2] in _TRAITS or name.partition(".")[0] in _TRAITS


def own_template(logger: str, message: bytes) -> Parsed | None:
    """Return the message as parsed by a template of the logger. None if no template of the logger matches."""
    record = LogRecord("server", 0, "", logger, message.decode(errors="replace"))
    parsed = parse_request(record) if logger == REQUEST_LOGGER else parse_own_text(record)
    return None if parsed is None or parsed.outcome == UNPARSED or parsed.template.startswith("known.") else parsed


class Loggers:
    """Resolves the logger names of one file. Names that do not depend on the message are cached."""

    def __init__(self) -> None:
        self._names: dict[bytes, str | None] = {}
        self._open: dict[bytes, list[str]] = {}

    def resolve(self, name: bytes, message: bytes) -> str | None:
        """Return the full name of a logger. None if the line does not show it.

        Args:
            name: name in the line. Empty if there is none.
        """
        try:
            return self._names[name]
        except KeyError:
            pass
        possible = self._open.get(name)
        if possible is None:
            possible = self._look_up(name)
            if possible is None:
                return self._names[name]
        return self._by_message(possible, message) if possible else by_template(message)

    def _look_up(self, name: bytes) -> list[str] | None:
        """Return the loggers among which the message decides. None if the name alone decides."""
        if len(self._names) + len(self._open) >= CACHE_MAX:
            self._names.clear()
            self._open.clear()
        text = name.decode(errors="replace")
        if not text or is_trait(text):
            self._open[name] = []
            return []
        possible = candidates(text)
        if len({(kind_of_logger(full), find_known_logger(full)) for full in possible}) > 1:
            self._open[name] = possible
            return possible
        self._names[name] = possible[0] if possible else without_method(text)
        return None

    def _by_message(self, possible: list[str], message: bytes) -> str | None:
        if "." not in possible[0] or possible[0] in _NO_CLASSES:
            matching = [full for full in possible if own_template(full, message) is not None]
            if matching or message.startswith(b"Principal = "):
                return matching[0] if len(matching) == 1 else "kafka.authorizer.logger"
            return STATE_CHANGE if message.startswith((b"[Broker id=", b"[Controller id=")) else None
        return possible[0] if own_template(possible[0], message) is not None else None


@lru_cache(maxsize=1)
def _telling() -> frozenset[str]:
    """Return the ids of templates with enough constant text to prove a line's logger."""
    return frozenset(template.id for template in TEMPLATES if len(_WORDS.findall(_OPEN.sub(" ", template.pattern))) > 1)


@lru_cache(maxsize=1)
def _loggers_by_key() -> dict[str, tuple[str, ...]]:
    """Return the loggers of templates by the first characters of their texts.

    The empty key has the loggers of templates that do not begin with constant text.
    """
    loggers: dict[str, set[str]] = defaultdict(set)
    for template in TEMPLATES:
        prefix = find_literal_prefix(template.pattern)
        for simple in template.loggers:
            loggers[prefix[:_KEY] if len(prefix) >= _KEY else ""].update(_full_names(simple))
    return {key: tuple(sorted(names)) for key, names in loggers.items()}


def template_keys() -> frozenset[str]:
    """Return the first characters of all message templates that begin with constant text."""
    return frozenset(_loggers_by_key()) - {""}


def _full_names(simple: str) -> Iterable[str]:
    return candidates(simple)[:1] if simple[:1].isupper() else [simple]


@lru_cache(maxsize=4096)
def by_template(message: bytes) -> str | None:
    """Return the only logger whose template matches a message.

    None if no template matches, or if templates of several loggers parse the message differently.
    """
    text = message[:400].partition(b"\n")[0].decode(errors="replace")
    if text.startswith(("Completed request:", "Handling request:", "Processing a request ")):
        return REQUEST_LOGGER
    if (settings := _SETTINGS.match(text)) and (names := candidates(settings[1])):
        return names[0]
    starts = {0, parse_bare_context(text)[1]}
    if text.startswith("[") and (close := text.find("]")) > 0:
        start = close + 1 + (text[close + 1 : close + 2] in (":", ","))
        starts = {start + (text[start : start + 1] == " ")}
    keys = {text[start : start + _KEY] for start in starts} | {""}
    index = _loggers_by_key()
    typed: dict[str, str] = {}
    known: dict[str, str] = {}
    for logger in sorted({logger for key in keys for logger in index.get(key, ())}):
        parsed = own_template(logger, message)
        if parsed is not None and (parsed.template in _telling() or logger == REQUEST_LOGGER):
            # A template without facts may match any end, as "Broker 1 .*" does. It never competes with one with facts.
            (typed if parsed.facts else known).setdefault(repr((parsed.template, parsed.facts)), logger)
    read = typed or known
    if len(read) == 1:
        return next(iter(read.values()))
    if (named := _COMPONENT.match(text)) and (full := candidates(named[1])):
        # A component names itself by its class: of several readings, or of none, that class's counts.
        own = [name for name in full if own_template(name, message) is not None or find_known_logger(name)]
        if own:
            return own[0]
    rest = [text[start:].rstrip() for start in starts]
    return _THREAD if not read and any(message_text in _THREAD_TEXTS for message_text in rest) else None


_THREAD_TEXTS = frozenset(template.pattern.replace("\\", "") for template in SHARED if ".*" not in template.pattern)
