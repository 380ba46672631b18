"""One writer per lake, wherever it lies: the kernel's lock on a local disk, a lease in a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.base.config import SessionConfig
from pipelines.lake.contents import require_own
from pipelines.lake.delta_commits import Fence, no_fence
from pipelines.lake.lease import leased
from pipelines.lake.lock import one_writer
from pipelines.storage.place import Place


@contextmanager
def writer_of(lake: Place, verb: str, session: SessionConfig, tell: Callable[[str], None]) -> Iterator[Fence]:
    """Be the one that writes a lake; see `pipelines.lake.lock` and `pipelines.lake.lease`.

    Yields:
        The fence: to be called before each commit.

    Raises:
        LakeBusy: another run still writes the lake.
        InputError: the lake cannot be written, or others made it.
    """
    require_own(lake)
    if isinstance(lake, Path):
        with one_writer(lake, verb, session.lock_wait_s, tell):
            yield no_fence
        return
    with leased(lake, verb, session.lease_s, session.lock_wait_s, tell) as fence:
        yield fence
