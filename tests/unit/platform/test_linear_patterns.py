"""Regular expressions that are applied to input take time that grows with it, and not with its square."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.bench import patterns
from tests.bench.patterns import MATCHING, SEARCHING, Compiled

#: Patterns that are not linear, and what they are used by.
QUADRATIC = (
    (rb"\n\s+at |\n\s*\.\.\. \d+ ", SEARCHING),  # frames of stack traces, up to 0.6.0
    (r"(?P<source>[A-Za-z0-9][\w./-]*[0-9/.-][\w./-]*)(?: |$)", MATCHING),
    (r"\(([^()]*(?:\([^()]*\))?[^()]*)\)", MATCHING),
    (r"a (.*?)\], b (.*?)\], c (.*)\]", MATCHING),
    (r"(?:x+x)+y", MATCHING),
    (r"\s*(?:in)?\s*\. End", MATCHING),
)
LINEAR = (
    (rb"\n[^\S\n]+at |\n[^\S\n]*\.\.\. \d+ ", SEARCHING),
    (r"\(([^()]*+(?:\([^()]*+\)[^()]*+)?)\)", MATCHING),
    (r"a (?>(.*?)\], b )(?>(.*?)\], c )(.*)\]", MATCHING),
    (r"x++y", MATCHING),
)


@pytest.fixture(autouse=True)
def alarm():
    import signal

    before = signal.signal(signal.SIGVTALRM, patterns._end)
    yield
    signal.signal(signal.SIGVTALRM, before)


@pytest.mark.parametrize(("pattern", "ways"), QUADRATIC)
def test_a_quadratic_pattern_is_found(pattern: str, ways: frozenset[str]) -> None:
    assert patterns.worst(Compiled(re.compile(pattern), "", 0, ways)) is not None


@pytest.mark.parametrize(("pattern", "ways"), LINEAR)
def test_a_linear_pattern_is_not(pattern: str, ways: frozenset[str]) -> None:
    assert patterns.worst(Compiled(re.compile(pattern), "", 0, ways)) is None


@pytest.mark.parametrize("chars", [patterns.CHARS, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_every_pattern_of_the_product_is_linear(chars: int) -> None:
    """In a process of its own: patterns are seen where they are compiled, and modules are imported once."""
    command = [sys.executable, "-m", "tests.bench.patterns", str(chars)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=patterns.ROOT)
    assert found.stdout == "", found.stdout
