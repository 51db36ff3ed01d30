"""Renews the leases that a worker holds, and notices those that are lost."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator

from .client import Client
from .errors import BatonError, LeaseLostError
from .events import Renewed, ServiceWatch, Tell
from .protocol import MAX_LEASES_PER_REQUEST, Lease
from .retry import FailedTry, back_off_seconds
from .work_report import Saving, WorkReport

#: The margin in which to stop a handler before another worker may start, and to wait for the last renewal.
SHORTEST_MARGIN_SECONDS = 0.1
LONGEST_MARGIN_SECONDS = 5.0

#: The most checkpoints in one request, so that it stays below the body limit of the service.
CHECKPOINTS_PER_REQUEST = 256
LONGEST_REQUEST_SECONDS = 10.0
SHORTEST_REQUEST_SECONDS = 0.1


#: Called with what a settlement says of the checkpoint that the service does not know yet.
Lose = Callable[[LeaseLostError, "dict[str, str | None]"], object]


class _KeptLease:
    """
    A lease as its holder sees it. All times are from the monotonic clock: the service sends the duration of a
    lease and not only its end, so changes of the wall clock have no effect.
    """

    def __init__(self, lease: Lease, lose: Lose, traceparent: str | None) -> None:
        self.report = WorkReport()
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

    def keep(self, lease: Lease, lose: Lose, traceparent: str | None) -> None:
        kept = _KeptLease(lease, lose, traceparent)
        with self._lock:
            self._leases[kept.id] = kept
            if kept.renew_at < self._wakes_at:
                self._clock.notify()

    def progress(self, lease_id: str, records: int | None, note: str | None) -> None:
        """Sent with the next renewal; soon, if the last one was sent a while ago."""
        with self._lock:
            kept = self._leases.get(lease_id)
            if kept is not None:
                kept.report.progress(records, note)
                self._clock.notify()

    def save(self, lease_id: str, checkpoint: str | None) -> Saving | None:
        """Sends a checkpoint at once. None: the lease has ended."""
        with self._lock:
            kept = self._leases.get(lease_id)
            if kept is None or self._ended:
                return None
            self._clock.notify()
            return kept.report.save(checkpoint)

    def drop(self, lease_id: str) -> dict[str, str | None]:
        """
        Stops renewing a lease that has ended or is about to be settled. Returns what its settlement says of the
        checkpoint that the service does not know yet.
        """
        with self._lock:
            kept = self._leases.pop(lease_id, None)
            return {} if kept is None else kept.report.end()

    def end(self) -> None:
        with self._lock:
            self._ended = True
            for kept in self._leases.values():
                kept.report.end()
            self._clock.notify()
            self._due.notify()

    def _watch_clock(self) -> None:
        while True:
            with self._lock:
                if self._ended:
                    return
                now = time.monotonic()
                lost = [
                    self._lost(lease, "lease_unrenewed", UNRENEWED)
                    for lease in list(self._leases.values())
                    if now >= lease.give_up_at
                ]
                if not lost:
                    if not self._renewing and self._renewal_due_at() <= now:
                        self._renewing = True
                        self._due.notify()
                    self._wakes_at = self._next_due_at()
                    pause = self._wakes_at - now
                    self._clock.wait(None if math.isinf(pause) else max(pause, 0.001))
                    self._wakes_at = 0.0
            for lose in lost:
                lose()

    def _lost(self, lease: _KeptLease, code: str, detail: str) -> Callable[[], object]:
        """With the lock. Returns what to call without it."""
        error = LeaseLostError(lease.id, code, detail)
        del self._leases[lease.id]
        unsaved = lease.report.end(error)
        return lambda: lease.lose(error, unsaved)

    def _renewal_due_at(self) -> float:
        due = (min(lease.renew_at, lease.report.due_at) for lease in self._leases.values())
        return max(min(due, default=math.inf), self._not_before)

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
                renewed = self._due_with(now)
                for lease in renewed:
                    lease.tried(now)
                # The clock now has to watch for the first lease to give up.
                self._clock.notify()
            error = self._renew(renewed)
            with self._lock:
                self._renewing = False
                self._failures = failures = 0 if error is None else self._failures + 1
                pause = 0.0 if error is None else self._pause_after(error)
                self._not_before = time.monotonic() + pause
                self._clock.notify()
            if isinstance(error, BatonError):
                self._watch.failed(FailedTry(error, failures, pause))

    def _due_with(self, now: float) -> list[_KeptLease]:
        """If one lease must be renewed, all are, so that they stay together. Otherwise those with a report."""
        kept = list(self._leases.values())
        if any(lease.renew_at <= now for lease in kept):
            return kept
        return [lease for lease in kept if lease.report.due_at <= now]

    def _renew(self, leases: list[_KeptLease]) -> Exception | None:
        try:
            for some in _in_requests(leases):
                self._renew_some(some)
            return None
        except Exception as error:  # also of the function that returns the token
            return error

    def _renew_some(self, leases: list[_KeptLease]) -> None:
        with self._lock:
            sent_at = time.monotonic()
            left = (self._earliest_give_up() - sent_at) / 2
            reports = {lease.id: lease.report.renewal(lease.id) for lease in leases}
        timeout = max(SHORTEST_REQUEST_SECONDS, min(left, LONGEST_REQUEST_SECONDS))
        trace = shared_trace({lease.traceparent for lease in leases})
        elements = [element for element, _ in reports.values()]
        answer = self._client.once(None, timeout, trace).renew(elements)
        self._watch.answered()
        lost = []
        with self._lock:
            for renewed in answer["renewed"]:
                kept = self._leases.get(renewed["leaseId"])
                if kept is not None:
                    kept.renewed(renewed["expiresInSeconds"], sent_at)
                    kept.report.taken(reports[kept.id][1], sent_at)
            for refusal in answer["refused"]:
                kept = self._leases.get(refusal["leaseId"])
                if kept is None:
                    continue
                # The lease lives on, and the next renewal goes without the checkpoint.
                if refusal["code"] == "checkpoint_too_long":
                    kept.report.refuse(refusal["detail"])
                else:
                    lost.append(self._lost(kept, refusal["code"], refusal["detail"]))
        for lose in lost:
            lose()
        if answer["renewed"]:
            self._tell(Renewed(len(answer["renewed"])))

    def _pause_after(self, error: Exception) -> float:
        """Shorter if little time is left."""
        quarter = max((self._earliest_give_up() - time.monotonic()) / 4, SHORTEST_REQUEST_SECONDS / 2)
        asked = error.retry_after_seconds if isinstance(error, BatonError) else None
        return min(back_off_seconds(self._failures, asked), quarter)


UNRENEWED = "the service could not be reached in time to renew the lease"


def _in_requests(leases: list[_KeptLease]) -> Iterator[list[_KeptLease]]:
    some: list[_KeptLease] = []
    checkpoints = 0
    for lease in leases:
        if len(some) == MAX_LEASES_PER_REQUEST or checkpoints == CHECKPOINTS_PER_REQUEST:
            yield some
            some, checkpoints = [], 0
        some.append(lease)
        checkpoints += lease.report.has_checkpoint
    if some:
        yield some


def shared_trace(traces: set[str | None]) -> str | None:
    """The trace of a request: the one that all its elements share, or none."""
    return next(iter(traces)) if len(traces) == 1 else None
