"""Folders that a failed run made and left empty."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from highwater.pipelines.storage.place import Place


@contextmanager
def undo_folders(folder: Place) -> Iterator[None]:
    """Remove empty folders that the block created, if the block fails."""
    made = [path for path in (folder, *folder.parents) if not path.exists()] if isinstance(folder, Path) else []
    try:
        yield
    except BaseException:
        for path in made:
            with suppress(OSError):
                path.rmdir()
        raise
