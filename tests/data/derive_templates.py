"""Makes templates.tsv.gz: what the audited classes of 31 releases can log: ``python -m tests.data.derive_templates``.

Read from ../shared/reference/log-templates/templates.jsonl.gz: the constant texts at logging calls. Texts that stand at
no such call are left out: those of exceptions, of ``toString``, names of metrics. A row has the class, the first and
the last release that has it, in how many of them it is, its level, and the text with ``{}`` for what is filled in.
"""

from __future__ import annotations

import gzip
from collections import defaultdict
from pathlib import Path

import orjson

from highwater.pipelines.grammars.grammar import shorten_logger
from highwater.pipelines.grammars.templates import TEMPLATES

SOURCE = Path(__file__).parents[3] / "shared" / "reference" / "log-templates" / "templates.jsonl.gz"
TABLE = Path(__file__).parent / "templates.tsv.gz"

#: Classes whose texts their subclasses or listeners log.
_PARENTS = {
    "AbstractFetcherThread",
    "AbstractFetcherManager",
    "AbstractControllerBrokerRequestBatch",
    "DelayedOperation",
}


def rows(source: Path = SOURCE) -> list[str]:
    """The table's lines, sorted."""
    audited = {name.partition("$")[0] for template in TEMPLATES for name in template.loggers} | _PARENTS
    releases: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    levels: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    classes: dict[str, str] = {}
    order: dict[str, int] = {}
    with gzip.open(source, "rt") as lines:
        for line in lines:
            row = orjson.loads(line)
            order.setdefault(row["version"], len(order))
            name = shorten_logger(row["class"])
            if name.partition("$")[0] in audited:
                key = (name, row["string"])
                classes[name] = row["class"]
                releases[key].append(row["version"])
                levels[key].update({row["level"]} - {""})
    table = []
    for (name, text), versions in sorted(releases.items()):
        if not levels[name, text]:
            continue
        versions.sort(key=order.__getitem__)
        span = (versions[0], versions[-1], str(len(set(versions))))
        escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
        table.append("\t".join((classes[name], *span, "/".join(sorted(levels[name, text])), escaped)))
    return table


def main() -> None:
    """Write the table."""
    TABLE.write_bytes(gzip.compress(("\n".join(rows()) + "\n").encode(), mtime=0))


if __name__ == "__main__":
    main()
