"""The texts that Kafka logs: ``templates.toml`` has those with facts, ``known.toml`` those without."""

from __future__ import annotations

import re
from importlib.resources import files
from types import ModuleType
from typing import Any, Final

import msgspec

from highwater.pipelines.grammars import (
    configs,
    fetcher,
    isr,
    kraft_controller,
    leadership,
    logs,
    partition,
    typed,
    zk_controller,
)
from highwater.pipelines.grammars.grammar import Facts, Template
from highwater.pipelines.grammars.states import COLON_STATE
from highwater.pipelines.grammars.values import ID_PARTITION, INT_LIST, OFFSET, PARTITION, name_offset
from highwater.schemas.silver import PARTITION_STATES, REPLICA_STATES

#: Modules with functions that `templates.toml` names.
_MODULES: Final[dict[str, ModuleType]] = {
    module.__name__.rpartition(".")[2]: module
    for module in (configs, fetcher, isr, kraft_controller, leadership, logs, partition, typed, zk_controller)
}
#: ``{name}``, ``{PART}`` or ``{name:PART}`` of a pattern.
_PLACE: Final = re.compile(r"\{(?:([a-z]\w*+):?+)?([A-Z]\w*+)?\}", re.ASCII)
_NEXT_LINE: Final = re.compile(r"\n *")

_NUMBER: Final = r"-?\d+"

#: A value that a client chose. The comment marks it in the pattern.
CLIENT: Final = "(?#client)"

#: Columns by table, or by a row of `rows`.
_Row = dict[str, dict[str, Any]]


class _Typed(msgspec.Struct, forbid_unknown_fields=True):
    """Content of ``templates.toml``, which describes its tables at the top."""

    rows: dict[str, _Row]
    parts: dict[str, str]
    texts: dict[str, list[tuple[str, str | _Row, str, str]]]


#: Id, class and method, pattern or patterns.
_Text = tuple[str, str, str | list[str]]


class _Known(msgspec.Struct, forbid_unknown_fields=True):
    """Content of ``known.toml``, which describes its tables at the top."""

    shared: list[_Text]
    loggers: list[tuple[str, str, str]]
    texts: dict[str, list[_Text]]


_TYPED: Final = msgspec.toml.decode(files(__package__).joinpath("templates.toml").read_bytes(), type=_Typed)
_KNOWN: Final = msgspec.toml.decode(files(__package__).joinpath("known.toml").read_bytes(), type=_Known)

_PARTS: Final = {
    "CLIENT": f"(?:{CLIENT}.*)",
    "PARTITION": PARTITION,
    "ID_PARTITION": ID_PARTITION,
    "TP": typed.TP,
    "OFFSET": OFFSET,
    "INT_LIST": INT_LIST,
    "COLON_STATE": COLON_STATE,
    "END_POINT": fetcher.END_POINT,
    "PARTITION_STATE": "|".join(PARTITION_STATES.words["from_state"]),
    "REPLICA_STATE": "|".join(REPLICA_STATES.words["from_state"]),
}


def _replace_part(place: re.Match[str]) -> str:
    name, part = place.groups()
    if name is None:
        return _PARTS[part]
    if part == "OFFSET":  # which has a group already
        return name_offset(name)
    return rf"(?P<{name}>{_PARTS[part] if part else _NUMBER})"


def _build_pattern(text: str) -> str:
    return _PLACE.sub(_replace_part, _NEXT_LINE.sub(" ", text))


for _name, _text in _TYPED.parts.items():
    _PARTS[_name] = _build_pattern(_text)


def _find_function(name: str) -> Any:
    module, _, function = name.rpartition(".")
    return getattr(_MODULES[module or "typed"], function)


def _make_facts(made_by: str | _Row, pattern: str) -> Facts | None:
    if made_by == "nothing":
        return None
    word: str | None = None
    if isinstance(made_by, str):
        if "." in made_by:
            function: Facts = _find_function(made_by)
            return function
        row, _, word = made_by.partition(" ")
        made_by = {row: {}}
    ((table, columns),) = made_by.items()
    if table in _TYPED.rows:
        ((table, shared),) = _TYPED.rows[table].items()
        columns = {name: word if value == "?" else value for name, value in shared.items()} | columns
    facts = typed.typed(table, **{name: _resolve_column(value) for name, value in columns.items()})
    names_id = "(?P<topic_id>" in pattern and re.search(r"\(\?P<(?:tp|topic)>", pattern)
    return typed.add_topic_id(facts) if names_id else facts


def _resolve_column(value: object) -> object:
    return _find_function(value[1:]) if isinstance(value, str) and value.startswith("@") else value


def _make_known(text: _Text, loggers: str = "") -> Template:
    template_id, source, patterns = text
    pattern = patterns if isinstance(patterns, str) else f"(?:{'|'.join(patterns)})"
    return Template(template_id, _build_pattern(pattern), source, loggers=tuple(loggers.split()))


#: Any logger may write these.
SHARED: Final = tuple(map(_make_known, _KNOWN.shared))
#: All others, in the order in which they are tried within a logger.
TEMPLATES: Final[tuple[Template, ...]] = (
    *(
        Template(
            template_id,
            (pattern := _build_pattern(text)),
            source,
            _make_facts(made_by, pattern),
            tuple(loggers.split()),
        )
        for loggers, texts in _TYPED.texts.items()
        for template_id, made_by, source, text in texts
    ),
    *(_make_known(text, loggers) for loggers, texts in _KNOWN.texts.items() for text in texts),
)
_BY_PREFIX: Final = {prefix: template for template, _, prefixes in _KNOWN.loggers for prefix in prefixes.split()}


def find_known_logger(logger: str) -> str | None:
    """Return the template id of a logger all of whose lines are known without rows. None for other loggers."""
    return next((template for prefix, template in _BY_PREFIX.items() if logger.startswith(prefix)), None)
