"""The runner of rings reads what pytest prints."""

from tests.rings import MINUTES, Ring, longest

PRINTED = """\
tests/unit/test_a.py ...s                                                 [ 45%]
tests/unit/test_b.py ..F                                                  [100%]
=========================== short test summary info ============================
SKIPPED [2] tests/unit/test_a.py:10: no corpora beside the checkout
SKIPPED [1] tests/unit/test_b.py:12: no corpora beside the checkout
FAILED tests/unit/test_b.py::test_it - AssertionError: it
========= 1 failed, 6 passed, 3 skipped in 83.20s (0:01:23) =========
"""


def test_progress_failures_skips_and_the_summary_are_read(capsys) -> None:
    ring = Ring("test-unit")
    for line in PRINTED.splitlines():
        ring.take(line)
    assert ring.percent == 100
    assert ring.summary == "1 failed, 6 passed, 3 skipped in 83.20s (0:01:23)"
    assert ring.skipped == {"no corpora beside the checkout": 3}
    printed = capsys.readouterr().out
    assert "test-unit: tests/unit/test_b.py ..F" in printed
    assert "test_a.py" not in printed


def test_how_long_rings_take_beside_each_other() -> None:
    names = ["test-audits", "test-spark", "test-unit"]
    assert longest(names, 1) == sum(MINUTES[name] for name in names)
    assert longest(names, 2) == 16
