"""Pulls partitions and calls a handler for each."""

from __future__ import annotations

import math
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from .client import Client, client_of
from .events import ServiceWatch, Stopped, Stopping, WorkerEvent
from .hand_off_loop import HandOffLoop
from .holdings import Around, Handler, Holdings
from .lease_keeper import LeaseKeeper
from .protocol import MAX_WAIT_SECONDS
from .retry import guarded

DEFAULT_WAIT_SECONDS = 20


class Worker:
    """
    Pulls partitions and calls a handler for each, in threads. Renews the lease while the handler runs, settles
    when it ends, and reconnects after an outage of the service.

    ::

        def load(partition):
            for rows in read(partition.compute_table_name, partition.partition_name):
                partition.raise_if_aborted()
                write(rows)
            return Done(records=partition.record_count)

        Worker("http://127.0.0.1:7070", load, concurrency=8).run()

    Returning means done, raising means failed. To say more, return a `Done`, or raise or return a `Failed` or a
    `Released`. Delivery is at least once: a partition may have been worked on before.
    """

    def __init__(
        self,
        service: str | Sequence[str] | Client,
        handler: Handler,
        *,
        concurrency: int = 1,
        prefetch: int = 0,
        record_budget: float = math.inf,
        tables: Sequence[str] | None = None,
        tasks: Sequence[str] | None = None,
        wait_seconds: float | None = None,
        until_idle: bool = False,
        finish_within_seconds: float = 20,
        release_within_seconds: float = 5,
        on_event: Callable[[WorkerEvent], object] | None = None,
        around: Around | None = None,
    ) -> None:
        """
        :param concurrency: The most partitions that are handled at the same time, each in its own thread.
        :param prefetch: How many further partitions to pull in advance, so that handlers do not wait for the
            network. Useful if a partition takes milliseconds. If it takes long, leave them to other workers.
        :param record_budget: The most records of all partitions that this worker holds. The partition that
            reaches the budget is still pulled, and one partition is always pulled, however large.
        :param tables: Pull only partitions of these compute tables, as `schema.table`. A worker that supports
            only some tables must set this, because it holds every partition that it is handed.
        :param tasks: Pull only partitions of these tasks.
        :param wait_seconds: How long a pull waits at the service if nothing is ready, up to 60. Zero polls
            instead. The default is 20, and 0 with `until_idle`.
        :param until_idle: Stop as soon as nothing is ready and nothing is held. Partitions in a back-off, behind
            a level barrier or leased to other workers are not waited for.
        :param finish_within_seconds: How long handlers may continue after `stop` before they are aborted.
        :param release_within_seconds: How long, after that, handlers may take to end and leases to be released.
            A handler that still runs then keeps its lease until it expires: releasing it would let two workers
            handle the partition.
        :param on_event: Called for every event (`baton_client.events`), one at a time.
        :param around: Wraps each call of the handler, for instance in a span: `around(partition, handle)` must
            call `handle()` once and return its result.
        """
        if wait_seconds is None:
            wait_seconds = 0 if until_idle else DEFAULT_WAIT_SECONDS
        if not callable(handler):
            raise TypeError("the handler must be a function")
        _demand(isinstance(concurrency, int) and concurrency >= 1, "concurrency must be a positive integer")
        _demand(isinstance(prefetch, int) and prefetch >= 0, "prefetch must be a non-negative integer")
        _demand(record_budget > 0, "record_budget must be positive")
        _demand(
            0 <= wait_seconds <= MAX_WAIT_SECONDS, f"wait_seconds must be between 0 and {MAX_WAIT_SECONDS}"
        )
        _demand(finish_within_seconds >= 0, "finish_within_seconds must not be negative")
        _demand(release_within_seconds >= 0, "release_within_seconds must not be negative")
        client = client_of(service)
        self._own_client = None if client is service else client
        self._concurrency = concurrency
        self._until_idle = until_idle
        self._finish_within_seconds = finish_within_seconds
        self._release_within_seconds = release_within_seconds
        self._on_event = on_event
        #: Not the lock of the state: a listener may call the worker.
        self._telling = threading.RLock()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        watch = ServiceWatch(self._tell)
        self._keeper = LeaseKeeper(client, watch, self._tell)
        self._holdings = Holdings(
            handler,
            around=around,
            concurrency=concurrency,
            prefetch=prefetch,
            record_budget=record_budget,
            keeper=self._keeper,
            tell=self._tell,
            lock=self._lock,
            on_changed=self._advance,
        )
        self._loop = HandOffLoop(
            client,
            holdings=self._holdings,
            watch=watch,
            tell=self._tell,
            lock=self._lock,
            wait_seconds=math.ceil(wait_seconds),
            tables=tables,
            tasks=tasks,
            on_nothing_ready=self._nothing_ready,
            on_hopeless=self._hopeless,
        )
        self._threads: list[threading.Thread] = []
        self._stopping = False
        self._finish_at = math.inf
        self._release_at = math.inf
        self._error: BaseException | None = None
        self._over = threading.Event()

    @property
    def running(self) -> int:
        """The number of running handlers."""
        return self._holdings.running

    @property
    def is_stopping(self) -> bool:
        return self._stopping

    def start(self) -> Worker:
        """Starts pulling, and returns at once."""
        with self._lock:
            if self._threads or self._stopping:
                return self
            duties = [*self._loop.threads(), *self._keeper.threads()]
            duties += [self._holdings.handle_partitions] * self._concurrency
            # A handler that does not end must not keep a stopped program alive.
            threads = [threading.Thread(target=duty, name="baton-worker", daemon=True) for duty in duties]
            self._threads = list(threads)
        for thread in threads:
            thread.start()
        return self

    def run(self, signals: Iterable[signal.Signals] = (signal.SIGTERM, signal.SIGINT)) -> None:
        """
        Starts pulling, and returns when the worker has stopped. Raises the error that it stopped because of.

        :param signals: Each of these stops the worker; a second one aborts the handlers at once. Only the main
            thread of a program can receive signals; in other threads they are ignored.
        """
        requests: queue.SimpleQueue[str] = queue.SimpleQueue()
        before = {}
        if threading.current_thread() is threading.main_thread():
            for number in signals:
                # A signal handler may interrupt code that has a lock. The queue needs none.
                before[number] = signal.signal(number, lambda *_: requests.put("signal"))
        try:
            self.start()
            threading.Thread(target=self._when_over, args=(requests.put,), daemon=True).start()
            while requests.get() == "signal":
                self._begin_stop(0 if self._stopping else None, None)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        self.wait()

    def _when_over(self, act: Callable[[str], object]) -> None:
        self._over.wait()
        act("over")

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until the worker has stopped, and raises the error that it stopped because of. False if not yet."""
        over = self._over.wait(seconds)
        if over and self._error is not None:
            raise self._error
        return over

    def stop(
        self,
        *,
        finish_within_seconds: float | None = None,
        release_within_seconds: float | None = None,
        wait: bool = True,
    ) -> None:
        """
        Stops pulling, lets handlers finish, and releases partitions that did not finish in time. A second call
        can shorten the remaining time but not extend it. Returns when the worker has stopped, or at once if
        `wait` is false or if it is called by a handler or a listener.
        """
        self._begin_stop(finish_within_seconds, release_within_seconds)
        if wait and threading.current_thread() not in self._threads:
            self._over.wait()

    def __enter__(self) -> Worker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _begin_stop(self, finish_within: float | None, release_within: float | None) -> None:
        finish = self._finish_within_seconds if finish_within is None else finish_within
        release = self._release_within_seconds if release_within is None else release_within
        with self._lock:
            now = time.monotonic()
            self._finish_at = min(self._finish_at, now + finish)
            if self._stopping:
                self._release_at = min(self._release_at, now + finish + release)
                self._changed.notify_all()
                return
            self._stopping = True
            self._holdings.refuse()
        stopper = threading.Thread(target=self._stop, args=(release,), name="baton-worker", daemon=True)
        self._threads.append(stopper)
        stopper.start()

    def _stop(self, release_within: float) -> None:
        self._tell(Stopping(self._holdings.running))
        self._holdings.close()
        # An aborted pull may still return partitions, which are then released.
        self._loop.close()
        self._until_empty(lambda: self._finish_at)
        self._holdings.interrupt()
        with self._lock:
            self._release_at = min(self._release_at, time.monotonic() + release_within)
        self._until_empty(lambda: self._release_at)
        with self._lock:
            abandoned = self._holdings.abandoned
            self._holdings.end()
        self._loop.end()
        self._keeper.end()
        if self._own_client is not None:
            self._own_client.close()
        self._tell(Stopped(abandoned, self._error))
        self._over.set()

    def _until_empty(self, deadline: Callable[[], float]) -> None:
        with self._lock:
            while self._loop.is_pulling or not self._holdings.is_empty:
                left = deadline() - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(None if math.isinf(left) else left)

    def _advance(self) -> None:
        """With the lock."""
        self._loop.advance()
        if self._stopping:
            self._changed.notify_all()

    def _nothing_ready(self) -> None:
        if self._until_idle and self._holdings.is_empty:
            self._begin_stop(None, None)

    def _hopeless(self, error: BaseException) -> None:
        if self._error is None:
            self._error = error
        self._begin_stop(None, None)

    def _tell(self, event: WorkerEvent) -> None:
        if self._on_event is not None:
            with self._telling:
                guarded(self._on_event, event)


def _demand(holds: bool, rule: str) -> None:
    if not holds:
        raise ValueError(rule)
