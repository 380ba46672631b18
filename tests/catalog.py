"""Tables of tests among those of the catalog, as a lake knows no others, and as SQL names them."""

from pathlib import Path

import pytest

from highwater.schemas import audit, gold, incidents
from highwater.schemas.catalog import BY_FULL_NAME, TABLES
from highwater.schemas.table import TableSpec

#: The tables of gold that every audit writes, but for the ledger of runs.
ANSWERS = tuple(spec for spec in TABLES if spec.layer == "gold" and spec is not gold.RUNS)
#: Those that name files and places in them: how the input is cut into files shows in no other.
NAME_FILES = (audit.EVIDENCE, incidents.INCIDENT_LINES)
#: Columns of the place of a line: other files, other places.
PLACE = ("file_id", "byte_offset")


@pytest.fixture(autouse=True)
def in_the_catalog(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module's table by the name of ``SPEC`` counts for one that is declared."""
    spec = getattr(request.module, "SPEC", None)
    if isinstance(spec, TableSpec):
        monkeypatch.setitem(BY_FULL_NAME, spec.full_name, spec)


def sql_name(path: Path) -> str:
    """A table's folder as Spark's SQL names it."""
    return f"delta.`file:{path}`"
