"""Lakes that verbs are given."""

from __future__ import annotations

from pipelines.delta_log import find_tables
from pipelines.errors import InputError
from pipelines.lake_program import require_no_newer
from pipelines.storage.place import Place


def tables_in(root: Place) -> dict[str, Place]:
    """Folders of a lake's tables by full name.

    Raises:
        InputError: there is no lake, or a newer version of highwater wrote it.
    """
    require_no_newer(root)
    tables = find_tables(root)
    if not tables:
        raise no_lake(root)
    return tables


def no_lake(root: Place) -> InputError:
    """There is no lake in a folder."""
    return InputError(root, "is no lake", "ingest logs first, or name the lake with --lake")
