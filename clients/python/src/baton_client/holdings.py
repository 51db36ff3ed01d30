"""The partitions that a worker holds, and the threads that handle them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from .client import PullChoice
from .errors import LeaseLostError, WorkerStoppedError
from .events import Lost, Pulled, Started, Tell, Threw, Unreported
from .lease_keeper import LeaseKeeper
from .outcome import STOPPED, Outcome, Released, outcome_of_error, outcome_of_result, settlement_of
from .partition import Partition
from .protocol import MAX_BATCH, PulledPartition, Settlement

Handler = Callable[[Partition], object]
Around = Callable[[Partition, Callable[[], object]], object]


class Holding:
    """One partition, from the pull until its handler has ended."""

    def __init__(self, pulled: PulledPartition, keeper: LeaseKeeper) -> None:
        self.partition = Partition(pulled, keeper)
        #: Set once the lease is lost. The result of the handler must then not count.
        self.lost: LeaseLostError | None = None
        #: What its settlement says of the checkpoint that the service does not know.
        self.unsaved: dict[str, str | None] = {}

    def abort(self, error: LeaseLostError | WorkerStoppedError) -> None:
        self.partition._signal.abort(error)


class Report(NamedTuple):
    """A partition that is to be settled."""

    partition: Partition
    settlement: Settlement
    #: From the call of the handler to its end.
    seconds: float


class Holdings:
    """
    Partitions that wait for a handler, are handled, or are to be settled. All methods that are not for one thread
    alone take the lock of the worker; events are told without it, because a listener may call the worker.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        around: Around | None,
        concurrency: int,
        prefetch: int,
        record_budget: float,
        keeper: LeaseKeeper,
        tell: Tell,
        lock: threading.Lock,
        on_changed: Callable[[], None],
    ) -> None:
        self._handler = handler
        self._around = around
        self._concurrency = concurrency
        self._prefetch = prefetch
        self._record_budget = record_budget
        self._keeper = keeper
        self._tell = tell
        self._lock = lock
        self._arrived = threading.Condition(lock)
        #: Called with the lock, when there is something to settle, capacity, or nothing left.
        self._on_changed = on_changed
        self._waiting: deque[Holding] = deque()
        self._running: set[Holding] = set()
        self._idle_threads = 0
        self._waking = False
        #: Read and emptied by the thread that settles.
        self.reports: deque[Report] = deque()
        #: Reports that were taken and are not answered.
        self.settling = 0
        #: Reports that were given up.
        self._given_up = 0
        self._records = 0
        self._closed = False
        self._interrupted = False
        self._ended = False
        #: Whether partitions are handed out under leases. Unknown until the first pull.
        self._under_leases = False

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def is_empty(self) -> bool:
        return not (self._running or self._waiting or self.reports or self.settling)

    @property
    def abandoned(self) -> int:
        """Partitions that were neither settled nor released."""
        open_reports = len(self.reports) + self.settling
        return self._given_up + len(self._running) + len(self._waiting) + open_reports

    def gave_up(self, count: int) -> None:
        self._given_up += count

    def changed(self) -> None:
        """With the lock."""
        self._on_changed()

    def capacity(self) -> PullChoice | None:
        """How much may be pulled now."""
        in_hand = len(self._running) + len(self._waiting)
        # A partition without a lease cannot be released, so it is not pulled before a handler is free.
        free = self._concurrency + (self._prefetch if self._under_leases else 0) - in_hand
        if self._closed or free <= 0:
            return None
        batch = min(free, MAX_BATCH)
        if self._record_budget == float("inf"):
            return PullChoice(batch=batch)
        records = int(self._record_budget - self._records)
        if records <= 0 and in_hand > 0:
            return None
        return PullChoice(batch=batch, records=max(records, 1))

    def receive(self, pulled: Sequence[PulledPartition]) -> None:
        holdings = [Holding(one, self._keeper) for one in pulled]
        self._tell(Pulled(tuple(holding.partition for holding in holdings)))
        for holding in holdings:
            lease = holding.partition.lease
            if lease is not None:
                self._keeper.keep(lease, partial(self.lose, holding), holding.partition.traceparent)
        with self._lock:
            self._under_leases = all(one["lease"] is not None for one in pulled)
            self._waiting.extend(holdings)
            self._records += sum(one["record_count"] for one in pulled)
            unstarted = self._give_back_waiting() if self._closed else []
            self._wake_one()
            self._on_changed()
        self._tell_unreported(unstarted)

    def refuse(self) -> None:
        """With the lock: has no capacity any more."""
        self._closed = True

    def close(self) -> None:
        """Releases what was not started, if it has a lease."""
        with self._lock:
            unstarted = self._give_back_waiting()
            self._on_changed()
        self._tell_unreported(unstarted)

    def interrupt(self) -> None:
        """Aborts the running handlers, because the time to finish is over."""
        with self._lock:
            self._interrupted = True
            unstarted = self._give_back_waiting()
            running = list(self._running)
            self._on_changed()
        self._tell_unreported(unstarted)
        for holding in running:
            holding.abort(WorkerStoppedError())

    def end(self) -> None:
        """With the lock."""
        self._ended = True
        self._arrived.notify_all()

    def _wake_one(self) -> None:
        """
        With the lock. A thread that wakes up wakes the next: if handlers are quick, a few threads handle a whole
        batch, and waking all of them would take longer than the batch.
        """
        if self._waiting and self._idle_threads > 0 and not self._waking:
            self._waking = True
            self._arrived.notify()

    def handle_partitions(self) -> None:
        """What each of the handler threads does."""
        while True:
            with self._lock:
                while not self._waiting and not self._ended:
                    self._idle_threads += 1
                    self._arrived.wait()
                    self._idle_threads -= 1
                    self._waking = False
                if self._ended:
                    return
                holding = self._waiting.popleft()
                self._running.add(holding)
                self._wake_one()
            self._tell(Started(holding.partition))
            begun = time.monotonic()
            outcome = self._handle(holding)
            self._finish(holding, outcome, time.monotonic() - begun)

    def _handle(self, holding: Holding) -> Outcome:
        partition = holding.partition
        try:
            if self._around is None:
                return outcome_of_result(self._handler(partition))
            return outcome_of_result(self._around(partition, lambda: self._handler(partition)))
        except BaseException as error:  # also SystemExit, which in a thread ends nothing but the thread
            self._tell(Threw(partition, error))
            return outcome_of_error(error, partition.aborted)

    def _finish(self, holding: Holding, outcome: Outcome, seconds: float) -> None:
        lease = holding.partition.lease
        if lease is None:
            self._tell_unreported([(holding.partition, outcome, seconds)])
        else:
            unsaved = self._keeper.drop(lease["id"])
            if holding.lost is None:
                holding.unsaved = unsaved
        with self._lock:
            self._running.discard(holding)
            self._settle(holding, outcome, seconds)
            self._on_changed()

    def _settle(self, holding: Holding, outcome: Outcome, seconds: float) -> None:
        partition = holding.partition
        self._records -= partition.record_count
        if partition.lease is None:
            return
        if holding.lost is not None:
            # If the service itself reported the loss, nothing is sent. If it was unreachable, the partition is
            # released; even if the handler finished, it must not be settled as done.
            if holding.lost.code != "lease_unrenewed":
                return
            outcome = Released("the lease could not be renewed in time")
        settlement = settlement_of(partition.lease["id"], outcome)
        if settlement["outcome"] != "done" and "checkpoint" in holding.unsaved:
            settlement["checkpoint"] = holding.unsaved["checkpoint"]
        self.reports.append(Report(partition, settlement, seconds))

    def _give_back_waiting(self) -> list[tuple[Partition, Outcome, float]]:
        """With the lock. Returns those without a lease, which are still handled as long as there is time."""
        unstarted: list[tuple[Partition, Outcome, float]] = []
        kept: deque[Holding] = deque()
        for holding in self._waiting:
            lease = holding.partition.lease
            if lease is not None:
                self._keeper.drop(lease["id"])
                self._settle(holding, Released(STOPPED), 0)
            elif self._interrupted:
                self._settle(holding, Released(STOPPED), 0)
                unstarted.append((holding.partition, Released(STOPPED), 0))
            else:
                kept.append(holding)
        self._waiting = kept
        return unstarted

    def _tell_unreported(self, ended: list[tuple[Partition, Outcome, float]]) -> None:
        for partition, outcome, seconds in ended:
            said = settlement_of("", outcome)
            self._tell(Unreported(partition, said["outcome"], said.get("reason"), seconds))

    def lose(self, holding: Holding, error: LeaseLostError, unsaved: dict[str, str | None]) -> None:
        """Called by the keeper of the leases."""
        with self._lock:
            if holding in self._running:
                holding.lost = error
                holding.unsaved = unsaved
            elif holding in self._waiting:
                self._waiting.remove(holding)
                self._records -= holding.partition.record_count
                self._on_changed()
            else:
                return  # It has ended meanwhile, and its report says so.
        holding.abort(error)
        self._tell(Lost(holding.partition, error))
