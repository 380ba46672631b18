"""Make ``pipelines/rules/examples.json``: one finding of each rule, from reports over real corpora.

    python -m tests.bench.rule_examples REPORT.json...

The finding of the highest severity with the fewest lines is taken. A corpus is the folder that holds ``broker-N``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

import orjson

TARGET = Path(__file__).resolve().parents[2] / "pipelines" / "rules" / "examples.json"
LINES_MAX = 6
TEXT_CHARS_MAX = 300
SEVERITIES = (("violation", "violations"), ("observation", "observations"))


def main(paths: Sequence[str]) -> None:
    """Write the examples."""
    examples: dict[str, dict[str, Any]] = {}
    for severity, key in SEVERITIES:
        for path in map(Path, paths):
            report = orjson.loads(path.read_bytes())
            for finding in sorted(
                _all(report[key]), key=lambda finding: (len(finding["evidence"]), finding["message"])
            ):
                if finding["evidence"]:
                    examples.setdefault(finding["rule_id"], _example(severity, finding))
    TARGET.write_bytes(orjson.dumps(dict(sorted(examples.items())), option=orjson.OPT_INDENT_2) + b"\n")
    print(f"{len(examples)} examples: {', '.join(sorted(examples))}")


def _all(findings: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for finding in findings:
        yield finding
        yield from _all(finding.get("implied", ()))


def _example(severity: str, finding: dict[str, Any]) -> dict[str, Any]:
    corpus, _ = _within(finding["evidence"][0]["file"])
    lines = [
        {
            "file": _within(line["file"])[1],
            "line_no": line["line_no"],
            "text": line["text"][:TEXT_CHARS_MAX],
        }
        for line in finding["evidence"][:LINES_MAX]
    ]
    place = f"{finding['topic']}-{finding['partition']}: " if finding["topic"] else ""
    return {"corpus": corpus, "severity": severity, "message": place + finding["message"], "lines": lines}


def _within(file: str) -> tuple[str, str]:
    """Corpus, and the path from there on: where it lies is nobody's business."""
    parts = PurePath(file).parts
    at = next(number for number, part in enumerate(parts) if part.startswith("broker-"))
    return parts[at - 1], "/".join(parts[at:])


if __name__ == "__main__":
    main(sys.argv[1:])
