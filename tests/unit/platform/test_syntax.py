"""Source is parsed by one thread at a time."""

from __future__ import annotations

import ast
import gc
import sys
import time
from collections.abc import Callable, Iterator
from threading import Thread

import pytest

from highwater.pipelines.base.syntax import parse_source

SOURCE = "\n".join(f"def f{n}(a):\n    return [a + {n} for a in range({n}) if (a, {n})]" for n in range(300))


@pytest.fixture
def other_threads_go_on() -> Iterator[None]:
    """As where what is collected within a parse has a finalizer that waits: PySpark's objects have one."""
    before = gc.get_threshold()

    def wait(phase: str, info: dict[str, int]) -> None:
        time.sleep(0.0005)

    gc.callbacks.append(wait)
    gc.set_threshold(300)
    yield
    gc.callbacks.remove(wait)
    gc.set_threshold(*before)


def problems(parse: Callable[[str], ast.Module]) -> list[Exception]:
    """What two threads raise that parse at once."""
    raised: list[Exception] = []

    def work() -> None:
        try:
            for _ in range(3):
                parse(SOURCE)
        except SystemError as error:
            raised.append(error)

    threads = [Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


@pytest.mark.usefixtures("other_threads_go_on")
def test_two_threads_may_parse() -> None:
    assert problems(parse_source) == []


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="mended in Python 3.12")
@pytest.mark.usefixtures("other_threads_go_on")
def test_python_itself_cannot() -> None:
    # Once it can in every version that is supported, `pipelines.base.syntax` can go.
    assert problems(ast.parse) != []
