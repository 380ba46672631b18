"""Writes docs/incident_kinds.md from the kinds and their examples: ``python -m tests.bench.incident_kinds``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from highwater.pipelines.incidents.incident import UNEXPLAINED
from highwater.pipelines.incidents.kinds import KINDS
from highwater.schemas.incidents import SEVERITY_MEANINGS
from tests.bench.incident_examples import EXAMPLES
from tests.bench.incident_severities import SEVERITIES_OF

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "incident_kinds.md"

_HEAD = """# Kinds of incidents

Made by `python -m tests.bench.incident_kinds`; a test compares. `gold.incidents` and `incidents` in report.json have
one row per episode. Of what can cause a kind, the cause of an episode is under way when it begins, has a broker or
partition in common with it, and began last. An episode that needs a cause and has none quotes the nearest line at WARN
or above before it: up to 30 s before, of its own nodes or their containers. Without such a line its sentence ends with
"{unexplained}"

## Severity

{meanings}

Incidents are listed by their worst effect: acknowledged data lost, other broken guarantees, no reads or writes,
refused writes, redundancy lost, latency, remarks. Minor incidents have no effect beyond latency, `info` ones are
remarks. After broken guarantees come those that are under way as the logs end and cost redundancy or more. Within one
effect severity decides, then weight: partitions times seconds, produces, or what is nearest. A chain has the place of
its worst part; what begins with the shutdown of the whole cluster comes last. At most ten sentences and five remarks of
`also_logged` are on the first screen. Lines of each start, stop or failover, and those that belong to another
incident, make no incident of their own.

| kind | severity | when |
|---|---|---|
{table}
"""


def document() -> str:
    """The whole text."""
    head = _HEAD.format(
        unexplained=UNEXPLAINED,
        meanings="\n".join(f"- `{severity}`: {meaning}." for severity, meaning in SEVERITY_MEANINGS.items()),
        table="\n".join(_severities()),
    )
    return "\n".join((head, *_sections()))


def _severities() -> Iterator[str]:
    for kind in KINDS:
        for severity, when in SEVERITIES_OF[kind.name].items():
            yield f"| [{kind.name}](#{kind.name}) | {severity} | {when} |"


def _sections() -> Iterator[str]:
    for kind in KINDS:
        yield f"## {kind.name}\n"
        yield f"{kind.meaning}\n"
        yield f"> {EXAMPLES[kind.name].sentence}\n"
        yield f"- Least evidence: {kind.ground.least}"
        yield f"- More shows: {kind.ground.more}"
        yield f"- Never concluded from: {kind.ground.never}"
        yield f"- Source: {kind.source}."
        for signature in kind.signatures:
            yield f"- Lines `{signature.name}`, {'/'.join(signature.levels)}: {signature.source}."
        if kind.causes:
            yield f"- Caused by: {', '.join(f'[{cause}](#{cause})' for cause in kind.causes)}."
        yield ""


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
