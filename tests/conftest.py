"""Every test belongs to the ring whose folder it is in; `pytest -m unit` runs one ring."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
RINGS = ("unit", "spark", "e2e")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        ring = item.path.relative_to(HERE).parts[0]
        if ring in RINGS:
            item.add_marker(ring)
