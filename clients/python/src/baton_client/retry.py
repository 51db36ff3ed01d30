"""Repeating requests that failed, and aborting them."""

from __future__ import annotations

import random
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from .errors import BatonError

T = TypeVar("T")


class AbortSignal:
    """Set once, with the error to raise. Listeners run in the thread that sets it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reason: BaseException | None = None
        self._listeners: list[Callable[[], object]] = []

    @property
    def aborted(self) -> bool:
        return self._reason is not None

    def raise_if_aborted(self) -> None:
        if self._reason is not None:
            raise self._reason

    def abort(self, reason: BaseException) -> None:
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
            listeners, self._listeners = self._listeners, []
        for listener in listeners:
            guarded(listener)

    def listen(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Calls the listener at the abort, or now if that was earlier. Returns what removes it again."""
        with self._lock:
            if self._reason is None:
                self._listeners.append(listener)
                return lambda: self._remove(listener)
        guarded(listener)
        return lambda: None

    def _remove(self, listener: Callable[[], object]) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def wait(self, seconds: float | None = None) -> None:
        """Waits this long, or until the abort, whose reason it raises."""
        aborted = threading.Event()
        remove = self.listen(aborted.set)
        aborted.wait(seconds)
        remove()
        self.raise_if_aborted()


def guarded(listener: Callable[..., object], *said: object) -> None:
    """Calls a function of the program. What it raises is only printed: a broken log must not cost a lease."""
    try:
        listener(*said)
    except Exception:
        print("baton-client: a listener raised", file=sys.stderr)
        traceback.print_exc()


FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 15.0
#: A longer retry delay of the service is cut to this: the service may have been restarted meanwhile.
LONGEST_RETRY_AFTER_SECONDS = 60.0


def back_off_seconds(
    failures: int, retry_after_seconds: float | None = None, spread: float | None = None
) -> float:
    """
    The pause after this many failures in a row. It doubles, and is random within its upper half, so that clients
    that lost the service at the same time do not come back at the same time.
    """
    spread = random.random() if spread is None else spread
    full = min(FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 1, 20), LONGEST_PAUSE_SECONDS)
    asked = min(retry_after_seconds or 0.0, LONGEST_RETRY_AFTER_SECONDS)
    return max(full * (0.5 + 0.5 * spread), asked * (1 + 0.25 * spread))


class FailedTry(NamedTuple):
    """A request that failed and will be repeated."""

    error: BatonError
    #: The number of failures in a row, including this one.
    failures: int
    pause_seconds: float


def persist(
    attempt: Callable[[], T],
    *,
    for_seconds: float,
    signal: AbortSignal | None = None,
    on_failure: Callable[[FailedTry], object] | None = None,
) -> T:
    """
    Repeats until the call succeeds, fails with an error that is not retryable, or runs out of time. Only for
    calls that may be repeated: every call of the hand-off may, a pull because it has an idempotency key.
    """
    begun = time.monotonic()
    failures = 0
    while True:
        try:
            return attempt()
        except BatonError as error:
            if not error.retryable or (signal is not None and signal.aborted):
                raise
            failures += 1
            pause = back_off_seconds(failures, error.retry_after_seconds)
            if time.monotonic() - begun + pause > for_seconds:
                raise
            failed = FailedTry(error, failures, pause)
        if on_failure is not None:
            on_failure(failed)
        if signal is None:
            time.sleep(pause)
        else:
            signal.wait(pause)
