"""Lines that carry nothing for the audit, as ``known.toml`` lists them: texts of loggers, and loggers as a whole."""

from __future__ import annotations

from importlib.resources import files

import msgspec

from pipelines.grammars.grammar import Template
from pipelines.grammars.values import ID_PARTITION, INT_LIST, OFFSET, PARTITION

#: Patterns that those of the file may name, such as ``{PARTITION}``.
_PARTS = {"PARTITION": PARTITION, "ID_PARTITION": ID_PARTITION, "OFFSET": OFFSET, "INT_LIST": INT_LIST}

#: Id, class and method, pattern or patterns.
_Text = tuple[str, str, str | list[str]]


class _Known(msgspec.Struct, forbid_unknown_fields=True):
    """The file; what its tables hold is said at its head."""

    shared: list[_Text]
    loggers: list[tuple[str, str, str]]
    texts: dict[str, list[_Text]]


def _template(text: _Text, loggers: str = "") -> Template:
    template_id, source, patterns = text
    pattern = patterns if isinstance(patterns, str) else f"(?:{'|'.join(patterns)})"
    for name, part in _PARTS.items():
        pattern = pattern.replace(f"{{{name}}}", part)
    return Template(template_id, pattern, source, loggers=tuple(loggers.split()))


_KNOWN = msgspec.toml.decode(files(__package__).joinpath("known.toml").read_bytes(), type=_Known)

#: Any logger may write these.
SHARED = tuple(map(_template, _KNOWN.shared))
TEMPLATES = tuple(_template(text, loggers) for loggers, texts in _KNOWN.texts.items() for text in texts)
_BY_PREFIX = {prefix: template for template, _, prefixes in _KNOWN.loggers for prefix in prefixes.split()}


def known_logger(logger: str) -> str | None:
    """Template id of a logger that is known as a whole."""
    return next((template for prefix, template in _BY_PREFIX.items() if logger.startswith(prefix)), None)
