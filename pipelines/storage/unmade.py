"""Folders that a run makes and, as it fails, has nothing to put into."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pipelines.storage.place import Place


@contextmanager
def unmade(folder: Place) -> Iterator[None]:
    """Where the block fails, the folder and those above it are gone again that it made and left empty."""
    made = [path for path in (folder, *folder.parents) if not path.exists()] if isinstance(folder, Path) else []
    try:
        yield
    except BaseException:
        for path in made:
            with suppress(OSError):
                path.rmdir()
        raise
