"""Sources of a report: what each file is, in which order and encoding, and what was around its records. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from highwater.pipelines.base.plain import number
from highwater.pipelines.bronze.wrappers.order import BY_TIME, IN_WORDS
from highwater.pipelines.bronze.wrappers.recognise import readings_of
from highwater.pipelines.report.model import SourceRead

_SOURCES_MAX: Final = 1000
_EXCERPTS: Final = {
    "levels": "no line below WARN",
    "logger": "lines of one logger only",
    "partition": "lines about one partition only",
    "numbers": "its line numbers have gaps",
}


def make_sources(files: Iterable[Mapping[str, Any]]) -> tuple[SourceRead, ...]:
    """Return the sources of a report.

    Args:
        files: rows of ``bronze.log_files``.
    """
    return tuple(sorted(map(_make_source, files), key=attrgetter("path"))[:_SOURCES_MAX])


def _make_source(row: Mapping[str, Any]) -> SourceRead:
    readings = readings_of(row["layout"]) if row.get("layout") else []
    orders = [reading.order for reading in readings if reading.order]
    return SourceRead(
        path=row["path"],
        layout="; ".join(dict.fromkeys(reading.layout for reading in readings)) or None,
        around=tuple(dict.fromkeys(step for reading in readings for step in reading.steps)),
        order=IN_WORDS[orders[0]] if orders else None,
        encoding=row.get("encoding"),
        excerpt=_EXCERPTS.get(row.get("excerpt") or ""),
    )


def summarize_sources(sources: Sequence[SourceRead]) -> str:
    """Return one line about all sources: the number of complete ones, and special features of the others."""
    excerpts = Counter(source.excerpt for source in sources if source.excerpt is not None)
    orders = Counter(
        "sorted by time" if source.order == IN_WORDS[BY_TIME] else "newest first" for source in sources if source.order
    )
    encodings = Counter(f"in {source.encoding}" for source in sources if source.encoding is not None)
    unusual = [f"{count} {what}" for counts in (orders, encodings) for what, count in counts.most_common()]
    reasons = "; ".join(f"{count}: {reason}" for reason, count in excerpts.most_common())
    partial = excerpts.total()
    said = [f"{number(len(sources) - partial, 'complete log')}"]
    said += [f"{number(partial, 'excerpt')} ({reasons})"] if partial else []
    return f"sources: {', '.join([*said, *unusual])}"


def describe_source(source: SourceRead) -> str | None:
    """Return the special features of a source: order, encoding, excerpt, container. None if there are none."""
    said = [source.order, f"converted from {source.encoding}" if source.encoding else None]
    said += [f"an excerpt: {source.excerpt}" if source.excerpt else None]
    said += [f"around its records: {' within '.join(reversed(source.around))}" if source.around else None]
    known = [text for text in said if text is not None]
    return f"{source.path}: {'; '.join(known)}" if known else None
