"""Blocks of documents: each runs in a test, or says why it cannot."""

from __future__ import annotations

import pytest

from tests.blocks import (
    COMMANDS,
    DOCUMENTS,
    OUTPUT,
    PYTHON,
    ROOT,
    RUN_ELSEWHERE,
    SQL,
    all_blocks,
    blocks,
    blocks_to_run,
)

EXAMPLE = """
<!-- not run: needs a cluster -->
```python
x
```

```
$ highwater sql "select a
                 from b" --format csv   # a comment
a
1
$ other
$ highwater audit LOGS \\
    --lake x
```

```text
output
```
"""


def test_blocks_have_their_kind_and_their_reason() -> None:
    found = list(blocks(EXAMPLE, "a.md"))
    assert [(block.kind, block.line, block.reason) for block in found] == [
        (PYTHON, 4, "needs a cluster"),
        (COMMANDS, 8, None),
        (OUTPUT, 18, None),
    ]
    sql = "select a\n                 from b"
    assert found[1].commands == [["sql", sql, "--format", "csv"], ["audit", "LOGS", "--lake", "x"]]
    with pytest.raises(KeyError):
        list(blocks("```java\n```\n", "a.md"))


def test_each_marker_belongs_to_a_block_that_would_run() -> None:
    marked = [block for block in all_blocks() if block.reason is not None]
    assert len(marked) == sum(path.read_text(encoding="utf-8").count("<!-- not run") for path in DOCUMENTS)
    assert not [block for block in marked if block.document in RUN_ELSEWHERE]


def test_documents_that_others_run_are_read_by_them() -> None:
    shown = {block.document for block in all_blocks()}
    for document, runner in RUN_ELSEWHERE.items():
        assert document in shown
        text = (ROOT / runner).read_text(encoding="utf-8")
        assert document in text or f"tests.bench.{document.removesuffix('.md').removeprefix('query_')}" in text


def test_most_blocks_run() -> None:
    kinds = {block.kind for block in blocks_to_run()}
    assert kinds == {PYTHON, SQL, COMMANDS}
    assert len([block for block in all_blocks() if block.reason is not None]) < len(blocks_to_run())
