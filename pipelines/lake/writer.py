"""One writer per lake: the kernel's lock on a local disk, a lease in a store."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Lock, Thread
from typing import NamedTuple
from uuid import uuid4

import orjson

from highwater.pipelines.base.config import SessionConfig
from highwater.pipelines.base.errors import InputError, LakeBusy, LeaseLost
from highwater.pipelines.lake.contents import require_own
from highwater.pipelines.lake.delta_commits import Fence, allow_commits
from highwater.pipelines.lake.lock import hold_lock
from highwater.pipelines.storage.place import Place
from highwater.pipelines.storage.store import store_of

# One writer per lake where there are no locks: a lease, a log of numbered objects that are put only if absent.
#
# ``_highwater/lease/00000000000000000042.json`` says who writes and until when. To take the lease, or to renew it, is
# to put the next number; that may be done by its holder, or once its time is over. Nothing is ever written over, so
# that one of two attempts fails. Clocks of two machines may differ by `SKEW_S`: the next writer waits that long.
#
# **Fence.** Before each commit the holder sees that its number is the newest and that time is left. A process that
# slept for longer than its lease may not continue, whether somebody else has taken it or not.

FOLDER = ("_highwater", "lease")
#: Clocks of machines that write one lake differ by less.
SKEW_S = 5.0
#: A lease is renewed that many times in its length, so that one request that fails does not lose it.
_RENEWALS = 4
#: Of the lease's length a commit may take so much: the fence asks for it to be left.
_COMMIT_SHARE = 0.25
_POLL_S = 1.0
_NAME = re.compile(r"(\d{20})\.json", re.ASCII)
#: Numbers that stay after the newest, for those who look at what happened.
_LEASES_MAX = 10


class LeaseTerm(NamedTuple):
    """One entry of the lease's log: a holder and the end of its term."""

    number: int
    holder: str  #: who has it, in words
    until_s: float  #: Unix time at which it is over; 0 once it was given back
    token: str  #: of the process that put it


class Lease:
    """The lease of a lake, held by this process.

    Args:
        length_s: time from a renewal to the end of the lease.
    """

    def __init__(self, lake: Place, verb: str, length_s: float) -> None:
        self._lake = lake
        self._folder = lake / FOLDER[0] / FOLDER[1]
        self._store = store_of(lake)
        self._length_s = length_s
        since = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
        self._holder = f"highwater {verb}, process {os.getpid()} on {socket.gethostname()}, since {since}"
        self._token = uuid4().hex
        self._lock = Lock()
        self._number = 0
        self._until_s = 0.0
        self._why_lost: str | None = None

    def take(self) -> LeaseTerm | None:
        """Take the lease if it is free and return None. Otherwise return the term of its holder."""
        with self._lock:
            newest = read_newest_term(self._lake)
            if newest is not None and newest.until_s and time.time() < newest.until_s + SKEW_S:
                return newest
            number = newest.number + 1 if newest else 1
            # Numbers that were removed could be put again: only the newest one counts.
            if self._put(number) and self._list_numbers()[-1] == number:
                return None
            return read_newest_term(self._lake)

    def renew(self) -> None:
        """Renew the lease. An expired lease cannot be renewed."""
        with self._lock:
            if self._why_lost is None and self._is_in_time() and not self._put(self._number + 1):
                self._why_lost = "another run has taken its lease"

    def fence(self) -> None:
        """Check before a commit that this process still holds the lease.

        Raises:
            LeaseLost: the lease expired, or another process has it.
        """
        with self._lock:
            self._is_in_time()
            if self._why_lost is None and self._until_s - time.time() < self._length_s * _COMMIT_SHARE:
                self._why_lost = "its lease could not be renewed in time"
            if self._why_lost is None and self._list_numbers()[-1] != self._number:
                self._why_lost = "another run has taken its lease"
            if self._why_lost is not None:
                raise LeaseLost(self._lake, self._why_lost)

    def give_back(self) -> None:
        """Release the lease for the next writer."""
        with self._lock:
            if self._why_lost is None and self._is_in_time():
                self._put(self._number + 1, over=True)
                for number in self._list_numbers()[:-_LEASES_MAX]:
                    self._store.remove(self._folder / _name(number))

    def _is_in_time(self) -> bool:
        if self._why_lost is None and time.time() >= self._until_s:
            self._why_lost = "it slept for longer than its lease"
        return self._why_lost is None

    def _put(self, number: int, over: bool = False) -> bool:
        until_s = 0.0 if over else time.time() + self._length_s
        term = {"holder": self._holder, "until_s": until_s, "token": self._token}
        if not self._store.create(self._folder / _name(number), orjson.dumps(term)):
            return False
        self._number, self._until_s = number, until_s
        return True

    def _list_numbers(self) -> list[int]:
        return _list_numbers(self._lake)


def read_newest_term(lake: Place) -> LeaseTerm | None:
    """Return the newest term of a lake's lease. None if the lease was never taken."""
    numbers = _list_numbers(lake)
    if not numbers:
        return None
    file = lake / FOLDER[0] / FOLDER[1] / _name(numbers[-1])
    try:
        return LeaseTerm(numbers[-1], **orjson.loads(store_of(lake).read(file)))
    except (ValueError, TypeError):
        raise InputError(file, "is not a term of a lease", "remove it, if no run writes the lake") from None


def _list_numbers(lake: Place) -> list[int]:
    names = store_of(lake).names(lake / FOLDER[0] / FOLDER[1])
    return sorted(int(match[1]) for name in names if (match := _NAME.fullmatch(name)))


def _name(number: int) -> str:
    return f"{number:020}.json"


@contextmanager
def hold_lease(
    lake: Place, verb: str, length_s: float, wait_s: float, tell: Callable[[str], None]
) -> Iterator[Callable[[], None]]:
    """Hold the lease of a lake within the block. Yield a function to call before each commit.

    Args:
        verb: command of this run, shown to waiting runs.
        length_s: length of the lease: how long others wait after this run is killed.
        wait_s: longest wait for another writer. 0 fails immediately.
        tell: receives one message with the holder that this run waits for.

    Raises:
        LakeBusy: another run still writes the lake.
        InputError: the lake cannot be written.
    """
    lease = Lease(lake, verb, length_s)
    try:
        store_of(lake).make_folder(lake / FOLDER[0] / FOLDER[1])
        _wait(lease, lake, wait_s, tell)
    except OSError as error:
        remedy = "check its name and the credentials in the environment, or choose another --lake"
        raise InputError(lake, f"cannot be written ({error.strerror})", remedy) from None
    ended = Event()
    renewing = Thread(target=_renew, args=(lease, length_s / _RENEWALS, ended), daemon=True)
    renewing.start()
    try:
        yield lease.fence
    finally:
        ended.set()
        renewing.join()
        # Who comes next waits for its end otherwise.
        with suppress(OSError):
            lease.give_back()


def _wait(lease: Lease, lake: Place, wait_s: float, tell: Callable[[str], None]) -> None:
    deadline = time.monotonic() + wait_s
    announced = False
    while (other := lease.take()) is not None:
        if time.monotonic() >= deadline:
            raise LakeBusy(lake, other.holder, wait_s)
        if not announced:
            tell(f"{lake} is being written by {other.holder}; waiting up to {wait_s:g} s")
            announced = True
        time.sleep(min(_POLL_S, max(0.0, deadline - time.monotonic())))


def _renew(lease: Lease, every_s: float, ended: Event) -> None:
    while not ended.wait(every_s):
        # The fence sees it if no later one gets through.
        with suppress(OSError):
            lease.renew()


@contextmanager
def hold_lake(lake: Place, verb: str, session: SessionConfig, tell: Callable[[str], None]) -> Iterator[Fence]:
    """Hold the lock (local disk) or lease (object store) of a lake. Yield a function to call before each commit.

    Raises:
        LakeBusy: another run still writes the lake.
        InputError: the lake cannot be written, or another program created it.
    """
    require_own(lake)
    if isinstance(lake, Path):
        with hold_lock(lake, verb, session.lock_wait_s, tell):
            yield allow_commits
        return
    with hold_lease(lake, verb, session.lease_s, session.lock_wait_s, tell) as fence:
        yield fence
