"""Renews the leases that a worker holds, and notices those that are lost."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from .client import Client
from .errors import BatonError, LeaseLostError
from .events import Renewed, ServiceWatch, Tell
from .protocol import MAX_LEASES_PER_REQUEST, Lease
from .retry import FailedTry, back_off_seconds

#: The margin in which to stop a handler before another worker may start, and to wait for the last renewal.
SHORTEST_MARGIN_SECONDS = 0.1
LONGEST_MARGIN_SECONDS = 5.0

LONGEST_REQUEST_SECONDS = 10.0
SHORTEST_REQUEST_SECONDS = 0.1


class _KeptLease:
    """
    A lease as its holder sees it. All times are from the monotonic clock: the service sends the duration of a
    lease and not only its end, so changes of the wall clock have no effect.
    """

    def __init__(
        self, lease: Lease, lose: Callable[[LeaseLostError], object], traceparent: str | None
    ) -> None:
        self.id = lease["id"]
        self.lose = lose
        self.traceparent = traceparent
        self._seconds = lease["expiresInSeconds"]
        self._ends_at = time.monotonic() + self._seconds
        #: When the first renewal since the last successful one was sent.
        self._tried_at: float | None = None

    @property
    def renew_at(self) -> float:
        """When two thirds of the lease are left, so that an outage of half a lease has no effect."""
        return self._ends_at - self._seconds * 2 / 3

    @property
    def give_up_at(self) -> float:
        """
        When the lease counts as lost unless a renewal succeeds. Never before a renewal was tried: a program that
        was suspended for long may still be in time.
        """
        if self._tried_at is None:
            return math.inf
        margin = max(SHORTEST_MARGIN_SECONDS, min(self._seconds / 10, LONGEST_MARGIN_SECONDS))
        return max(self._ends_at - margin, self._tried_at + margin)

    def tried(self, now: float) -> None:
        if self._tried_at is None:
            self._tried_at = now

    def renewed(self, seconds: float, since: float) -> None:
        """`since` is when the renewal was sent. The service cannot have counted from an earlier time."""
        self._seconds = seconds
        self._ends_at = since + seconds
        self._tried_at = None


class LeaseKeeper:
    """
    Renews all held leases in one request. One thread sends, and another watches the clock: looking up a name may
    take longer than a lease.
    """

    def __init__(self, client: Client, watch: ServiceWatch, tell: Tell) -> None:
        self._client = client
        self._watch = watch
        self._tell = tell
        self._lock = threading.Lock()
        self._clock = threading.Condition(self._lock)
        self._due = threading.Condition(self._lock)
        self._leases: dict[str, _KeptLease] = {}
        self._wakes_at = math.inf
        self._renewing = False
        self._failures = 0
        self._not_before = 0.0
        self._ended = False

    def threads(self) -> list[Callable[[], None]]:
        return [self._watch_clock, self._renew_when_due]

    def keep(self, lease: Lease, lose: Callable[[LeaseLostError], object], traceparent: str | None) -> None:
        kept = _KeptLease(lease, lose, traceparent)
        with self._lock:
            self._leases[kept.id] = kept
            if kept.renew_at < self._wakes_at:
                self._clock.notify()

    def drop(self, lease_id: str) -> None:
        """Stops renewing a lease that has ended or is about to be settled."""
        with self._lock:
            self._leases.pop(lease_id, None)

    def end(self) -> None:
        with self._lock:
            self._ended = True
            self._clock.notify()
            self._due.notify()

    def _watch_clock(self) -> None:
        while True:
            with self._lock:
                if self._ended:
                    return
                now = time.monotonic()
                lost = [lease for lease in self._leases.values() if now >= lease.give_up_at]
                for lease in lost:
                    del self._leases[lease.id]
                if not lost:
                    if not self._renewing and self._renewal_due_at() <= now:
                        self._renewing = True
                        self._due.notify()
                    self._wakes_at = self._next_due_at()
                    pause = self._wakes_at - now
                    self._clock.wait(None if math.isinf(pause) else max(pause, 0.001))
                    self._wakes_at = 0.0
            for lease in lost:
                detail = "the service could not be reached in time to renew the lease"
                lease.lose(LeaseLostError(lease.id, "lease_unrenewed", detail))

    def _renewal_due_at(self) -> float:
        earliest = min((lease.renew_at for lease in self._leases.values()), default=math.inf)
        return max(earliest, self._not_before)

    def _earliest_give_up(self) -> float:
        return min((lease.give_up_at for lease in self._leases.values()), default=math.inf)

    def _next_due_at(self) -> float:
        give_up = self._earliest_give_up()
        return give_up if self._renewing else min(give_up, self._renewal_due_at())

    def _renew_when_due(self) -> None:
        while True:
            with self._lock:
                while not self._renewing and not self._ended:
                    self._due.wait()
                if self._ended:
                    return
                now = time.monotonic()
                for lease in self._leases.values():
                    lease.tried(now)
                ids = list(self._leases)
                # The clock now has to watch for the first lease to give up.
                self._clock.notify()
            error = self._renew(ids)
            with self._lock:
                self._renewing = False
                self._failures = failures = 0 if error is None else self._failures + 1
                pause = 0.0 if error is None else self._pause_after(error)
                self._not_before = time.monotonic() + pause
                self._clock.notify()
            if isinstance(error, BatonError):
                self._watch.failed(FailedTry(error, failures, pause))

    def _renew(self, ids: list[str]) -> Exception | None:
        try:
            for at in range(0, len(ids), MAX_LEASES_PER_REQUEST):
                self._renew_some(ids[at : at + MAX_LEASES_PER_REQUEST])
            return None
        except Exception as error:  # also of the function that returns the token
            return error

    def _renew_some(self, ids: list[str]) -> None:
        with self._lock:
            sent_at = time.monotonic()
            left = (self._earliest_give_up() - sent_at) / 2
            traces = {self._leases[id].traceparent for id in ids if id in self._leases}
        timeout = max(SHORTEST_REQUEST_SECONDS, min(left, LONGEST_REQUEST_SECONDS))
        answer = self._client.once(None, timeout, shared_trace(traces)).renew(ids)
        self._watch.answered()
        lost = []
        with self._lock:
            for renewed in answer["renewed"]:
                kept = self._leases.get(renewed["leaseId"])
                if kept is not None:
                    kept.renewed(renewed["expiresInSeconds"], sent_at)
            for refusal in answer["refused"]:
                kept = self._leases.pop(refusal["leaseId"], None)
                if kept is not None:
                    lost.append((kept, LeaseLostError(kept.id, refusal["code"], refusal["detail"])))
        for kept, error in lost:
            kept.lose(error)
        if answer["renewed"]:
            self._tell(Renewed(len(answer["renewed"])))

    def _pause_after(self, error: Exception) -> float:
        """Shorter if little time is left."""
        quarter = max((self._earliest_give_up() - time.monotonic()) / 4, SHORTEST_REQUEST_SECONDS / 2)
        asked = error.retry_after_seconds if isinstance(error, BatonError) else None
        return min(back_off_seconds(self._failures, asked), quarter)


def shared_trace(traces: set[str | None]) -> str | None:
    """The trace of a request: the one that all its elements share, or none."""
    return next(iter(traces)) if len(traces) == 1 else None
