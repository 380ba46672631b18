"""Commands of documents that need services are valid Bash, and docs/collecting.md has one for each place."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "collecting.md").read_text(encoding="utf-8")
#: Indented blocks, below a list item too.
_BLOCK = re.compile(r"(?:^ {4,}\S.*\n(?:^ {4,}.*\n|\n(?= {4}))*)+", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
OTHERS = [_FENCED.sub("", (DOCS / name).read_text(encoding="utf-8")) for name in ("kubernetes.md", "airflow.md")]
BLOCKS = [dedent(match[0]) for text in (TEXT, *OTHERS) for match in _BLOCK.finditer(text)]
#: Blocks of resources, not of commands.
COMMANDS = [block for block in BLOCKS if not block.startswith("spec:")]


def test_each_way_in_has_a_command() -> None:
    titles = re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
    texts = re.split(r"^## .+$", TEXT, flags=re.MULTILINE)[1:]
    sections = dict(zip((title.lower().replace(" ", "-") for title in titles), texts, strict=True))
    linked = set(re.findall(r"\]\(#([\w-]+)\)", TEXT))
    assert linked <= sections.keys()
    assert {"amazon-msk", "loki", "splunk", "datadog", "azure", "google-cloud", "systemd"} <= linked
    for name in linked - {"confluent"}:  # files, containers and pods, as in other sections
        assert _BLOCK.search(sections[name]), name
        assert "**Left out**" in sections[name], name


@pytest.mark.parametrize("block", COMMANDS, ids=[block.split()[0] + str(n) for n, block in enumerate(COMMANDS)])
def test_commands_are_valid_bash(block: str) -> None:
    checked = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
