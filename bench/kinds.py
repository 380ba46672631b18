"""docs/incident_kinds.md, from the kinds of `pipelines.incidents.kinds`: ``python -m bench.kinds``."""

from __future__ import annotations

import sys
from pathlib import Path

from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds import KINDS

DOCUMENT = Path(__file__).parents[1] / "docs" / "incident_kinds.md"
_HEAD = """# Kinds of incidents

What `gold.incidents`, `highwater incidents` and `incidents` of report.json tell of. `python -m bench.kinds` writes this
document anew from the modules of `pipelines/incidents/kinds`, one a kind.

A *cause* is a kind that can bring this one about: it begins no later, is still under way or just over, and has a
broker, a partition or a replica in common with it.
"""


def document() -> str:
    """The document."""
    return _HEAD + "".join(map(_section, KINDS))


def _section(kind: Kind) -> str:
    causes = ", ".join(f"[{name}](#{name})" for name in kind.causes) or "none that logs show"
    lines = [f"\n## {kind.name}", kind.meaning, "", f"- Source: {kind.source}", f"- Causes: {causes}"]
    lines += [f"- Lines `{signature.name}`: {signature.source}" for signature in kind.signatures]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the document anew."""
    DOCUMENT.write_text(document(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
