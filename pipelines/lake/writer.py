"""One writer per lake, wherever it lies: the kernel's lock on a local disk, a lease in a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pipelines.base.config import SessionConfig
from pipelines.lake.contents import require_own
from pipelines.lake.delta_commits import Fence, no_fence
from pipelines.lake.lease import leased
from pipelines.lake.lock import one_writer
from pipelines.storage.place import Place


class Writer(NamedTuple):
    """What the one that writes has to heed.

    Attributes:
        fence: to be called before each commit.
        jvm_lock: the file that the run's JVM has to lock (`pipelines.spark.session.lock_in_jvm`), if there is one.
    """

    fence: Fence = no_fence
    jvm_lock: Path | None = None


#: Of a session that only reads.
NO_WRITER = Writer()


@contextmanager
def writer_of(lake: Place, verb: str, session: SessionConfig, tell: Callable[[str], None]) -> Iterator[Writer]:
    """Be the one that writes a lake; see `pipelines.lake.lock` and `pipelines.lake.lease`.

    Raises:
        LakeBusy: another run still writes the lake.
        InputError: the lake cannot be written, or others made it.
    """
    require_own(lake)
    if isinstance(lake, Path):
        with one_writer(lake, verb, session.lock_wait_s, tell) as jvm_lock:
            yield Writer(jvm_lock=jvm_lock)
        return
    with leased(lake, verb, session.lease_s, session.lock_wait_s, tell) as fence:
        yield Writer(fence)
