"""Places to try a store with: a folder, and a bucket in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from obstore.store import MemoryStore

from highwater.pipelines.storage import objects
from highwater.pipelines.storage.place import Place, Uri


@pytest.fixture
def disk(tmp_path: Path) -> Place:
    """An empty folder for tables: deltalake knows no bucket in memory. Rings with a server have `root` for it."""
    return tmp_path


@pytest.fixture(params=["path", "object"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """An empty folder."""
    if request.param == "path":
        yield tmp_path
        return
    memory = MemoryStore()
    monkeypatch.setattr(objects, "_open_client", lambda scheme, container: memory)
    # Of its own: commits are remembered by their URI.
    yield Uri("s3a", f"bucket-{uuid4()}", "some folder")
