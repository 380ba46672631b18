"""Every test belongs to the ring whose folder it is in; `pytest -m unit` runs one ring."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from tests.examples import examples

HERE = Path(__file__).parent
RINGS = ("unit", "spark", "e2e", "dags", "cluster")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        ring = item.path.relative_to(HERE).parts[0]
        if ring in RINGS:
            item.add_marker(ring)
        elif ring == "crash":
            item.add_marker("e2e")


# A failure in continuous integration has to be one that can be looked at: the same examples every time. Nor may it come
# from a busy machine: rings run beside each other, so an example has no deadline. A property that does not say how many
# examples it is worth is tried on Hypothesis's hundred, or a third of them, as tests/examples.py has it.
settings.register_profile("repeatable", parent=examples(100), derandomize=True)
settings.load_profile("repeatable")


@pytest.fixture
def tell(request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Write a line that is shown whether or not the test passes."""
    reporter = request.config.pluginmanager.getplugin("terminalreporter")
    assert reporter is not None

    def write(line: str) -> None:
        with capfd.disabled():
            reporter.write_line(line)

    return write
