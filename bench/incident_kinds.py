"""Writes docs/incident_kinds.md from the kinds and their examples: ``python -m bench.incident_kinds``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.incident_examples import EXAMPLES
from pipelines.incidents.kinds import KINDS

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "incident_kinds.md"

_HEAD = """# Kinds of incidents

Made by `python -m bench.incident_kinds`; a test compares. `gold.incidents` and `incidents` in report.json have one row
per episode. Severities are `critical` (acknowledged records are lost, or clients could not write or read), `major` (the
cluster was one fault away from that, or clients waited), `minor` (it went back by itself) and `info`. Of
what can cause a kind, the cause of an episode is one that is under way when it begins, has a broker or partition in
common with it, and began last.
"""


def document() -> str:
    """The whole text."""
    return "\n".join((_HEAD, *_sections()))


def _sections() -> Iterator[str]:
    for kind in KINDS:
        yield f"## {kind.name}\n"
        yield f"{kind.meaning}\n"
        yield f"> {EXAMPLES[kind.name].sentence}\n"
        yield f"- Source: {kind.source}."
        for signature in kind.signatures:
            yield f"- Lines `{signature.name}`, {'/'.join(signature.levels)}: {signature.source}."
        if kind.causes:
            yield f"- Caused by: {', '.join(f'[{cause}](#{cause})' for cause in kind.causes)}."
        yield ""


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
