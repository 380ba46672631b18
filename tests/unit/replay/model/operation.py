"""An operation that waits: completed exactly once, by whichever check or timer comes first.

Source: ``DelayedOperation``; KAFKA-6653, KAFKA-8334.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from tests.unit.replay.model.rules import Rules


class DelayedOperation(ABC):
    """A request that waits for a condition, or for its time to run out.

    The model has one thread. A check of an operation *within* a check of it stands for another thread's that meets a
    held lock; what becomes of it is the version's (`Rules.loses_contended_checks`).
    """

    def __init__(self, rules: Rules, delay_ms: int) -> None:
        self.rules = rules
        self.delay_ms = delay_ms
        self.cancel_timer: Callable[[], None] | None = None
        self._completed = False
        self._checking = False
        self._check_again = False

    @property
    def is_completed(self) -> bool:
        return self._completed

    @abstractmethod
    def try_complete(self) -> bool:
        """Look whether the condition holds; `force_complete` if so. True if this call completed it."""

    @abstractmethod
    def on_complete(self) -> None:
        """Answer the request. Called once."""

    @abstractmethod
    def on_expiration(self) -> None:
        """Note that the time ran out. Called after `on_complete`, and only if the timer completed the operation."""

    def force_complete(self) -> bool:
        """Complete it if nobody has; True if this call did."""
        if self._completed:
            return False
        self._completed = True
        if self.cancel_timer is not None:
            self.cancel_timer()
        self.on_complete()
        return True

    def safe_try_complete(self) -> bool:
        """`try_complete`, as one thread among others; True if this call completed it."""
        if self._checking:
            self._check_again = not self.rules.loses_contended_checks
            return False
        while not self._completed:
            self._checking, self._check_again = True, False
            try:
                done = self.try_complete()
            finally:
                self._checking = False
            if done or not self._check_again:
                return done
        return False

    def expire(self) -> None:
        """The timer fires (``DelayedOperation.run``)."""
        if self.force_complete():
            self.on_expiration()
