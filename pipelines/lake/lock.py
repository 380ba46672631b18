"""One writer per lake: a lock on a file in the lake's folder, which the kernel gives back when its holder dies.

Every verb that writes takes it before Spark starts, so that waiting costs no JVM. Readers do not ask for it: a Delta
table is read at one version, whatever is being written.

The driver holds ``.writer.lock`` (flock), and says in it who it is. Its JVM and their workers need none: a driver that
is killed alone leaves them for a moment, and they write files that no commit will name.

What it cannot do: it is the kernel's, so it works on a local disk and between the machines of a file system that
carries locks (NFS from version 4). An object store has no locks, and some network mounts refuse them; then this is
reported as a warning, and the run continues. Delta protects its tables there: a commit has a number that no other
commit can take. So no table is torn, and of two rewrites of one table the later one fails. Two runs may still add the
same lines.

Who else may write the lake's folder may have put something there by these names. So the files are opened without
following a link, they must be plain files of one name with nothing but a holder in them, and are never cut: a holder is
written over the one before, at the same length.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from highwater.pipelines.base.errors import InputError, LakeBusy

LOCK_NAME = ".writer.lock"

_POLL_S = 0.2
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
#: Size of the lock file: a holder, padded with blanks. An unused file is empty.
_HOLDER_BYTES = 1024
_ASKED_MAX = 4


@contextmanager
def hold_lock(lake: Path, verb: str, wait_s: float, tell: Callable[[str], None]) -> Iterator[None]:
    """Hold the writer's lock of a lake within the block.

    Args:
        verb: command of this run, shown to waiting runs.
        wait_s: longest wait for another writer. 0 fails immediately.
        tell: receives one message: the holder that this run waits for, or that this file system has no locks.

    Raises:
        LakeBusy: another run still writes the lake.
        InputError: the folder cannot be written.
    """
    with ExitStack() as stack:
        while True:
            file = stack.enter_context(_open_file(lake, LOCK_NAME, os.O_RDWR | os.O_CREAT))
            if not _wait(file, lake, wait_s, tell):
                yield
                return
            # A lock on a file that was removed binds no one: a run that failed may take the lake with it that it made.
            if os.fstat(file).st_nlink:
                break
            stack.close()
        _write_holder(file, lake, verb)
        try:
            yield
        finally:
            os.pwrite(file, _pad_holder({}), 0)


def read_holder(lake: Path) -> str:
    """Return the lock's holder: command, process, host and start. Call it only while the lock is held."""
    for _ in range(_ASKED_MAX):
        try:
            with _open_file(lake, LOCK_NAME, os.O_RDONLY) as file:
                holder = json.loads(os.pread(file, _HOLDER_BYTES, 0))
            return f"highwater {holder['verb']}, process {holder['pid']} on {holder['host']}, since {holder['since']}"
        except (OSError, ValueError, KeyError, TypeError):
            time.sleep(_POLL_S / _ASKED_MAX)  # it has the lock, and has not written who it is yet
    return "another run"


@contextmanager
def _open_file(lake: Path, name: str, flags: int) -> Iterator[int]:
    """Yield the file descriptor of a lock file in the lake's folder.

    Raises:
        InputError: the file cannot be opened, or is not a lock file.
    """
    remedy = "make it writable and make room, or choose another folder with --lake"
    try:
        file = os.open(lake / name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InputError(lake / name, "is a link, and a lock is none", "remove the link") from None
        raise InputError(lake, f"no file can be written there ({error.strerror})", remedy) from None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or not _is_lock(os.pread(file, _HOLDER_BYTES, 0)):
            raise InputError(lake / name, "is not a lock of a lake: something else has its name", "move it away")
        yield file
    finally:
        os.close(file)


def _is_lock(content: bytes) -> bool:
    """Return True if a file's content is a lock's: a holder in JSON, or empty as an ended or killed run leaves it."""
    try:
        return not content.strip() or isinstance(json.loads(content), dict)
    except ValueError:
        # Cut off while it was written.
        return content.startswith(b"{")


def _wait(file: int, lake: Path, wait_s: float, tell: Callable[[str], None]) -> bool:
    """Take the lock, waiting up to `wait_s`. Return False if the file system has no locks."""
    deadline = time.monotonic() + wait_s
    announced = False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            tell(f"warning: {lake}: no locks on this file system; see to it that no other run writes this lake")
            return False
        if time.monotonic() >= deadline:
            raise LakeBusy(lake, read_holder(lake), wait_s)
        if not announced:
            tell(f"{lake} is being written by {read_holder(lake)}; waiting up to {wait_s:g} s")
            announced = True
        time.sleep(min(_POLL_S, max(0.0, deadline - time.monotonic())))


def _write_holder(file: int, lake: Path, verb: str) -> None:
    since = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": since, "verb": verb}
    try:
        os.pwrite(file, _pad_holder(holder), 0)
    except OSError as error:
        raise InputError(lake, f"cannot be written ({error.strerror})", "make room, or choose another folder") from None


def _pad_holder(holder: dict[str, object]) -> bytes:
    return json.dumps(holder).encode().ljust(_HOLDER_BYTES - 1) + b"\n"
