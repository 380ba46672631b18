"""Write docs/waits.md: ``python -m tests.bench.waits``. The table is `pipelines.kafka.waits.WAITS`."""

from __future__ import annotations

from pathlib import Path

from highwater.pipelines.kafka.waits import OTHER, WAITS

TARGET = Path(__file__).resolve().parents[2] / "docs" / "waits.md"

_HEAD = """\
# What a request may wait for

Each operation that a broker lets wait, by release: what completes it, what logs show of it beside the request's own
line, and what is replayed. Made from `pipelines/kafka/waits.py` by `python -m tests.bench.waits`; a test compares.

A wait is the request's `remoteTimeMs`. Where the column *replayed* says "waited", it is known how long a request waited
and for what kind of thing, not which line ended it. `gold.delayed_operations.waited_as` names Kafka's class of what is
replayed, `gold.request_phases.waited_for` the kind of each request that waited 1 ms or more.
"""


def document() -> str:
    """The whole document."""
    lines = [
        _HEAD,
        "| kind | releases | requests | completed by | at most | logs show | replayed |",
        "|---|---|---|---|---|---|---|",
    ]
    for wait in WAITS:
        requests = ", ".join(wait.apis) or "-"
        cells = (wait.kind, wait.releases, requests, wait.completed_by, wait.timer, wait.shown, wait.replayed)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", f"Other requests that wait, wait for {OTHER}.", ""])


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
