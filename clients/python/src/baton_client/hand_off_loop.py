"""The requests between a worker and the service."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from .client import Client, PullChoice, Pulled, new_idempotency_key
from .errors import BatonError, is_too_large
from .events import Refused, ServiceWatch, Settled, Tell
from .holdings import Holdings, Report
from .lease_keeper import shared_trace
from .protocol import SettleAnswer
from .retry import AbortSignal, persist

T = TypeVar("T")

#: Low enough that a request with the longest reasons, escaped, stays below the body limit of the service.
SETTLEMENTS_PER_REQUEST = 160
#: The pause after an immediate empty answer, if the service does not send one.
REST_SECONDS = 1.0
#: Random spread of the pause, so that workers that were answered at the same time do not pull at the same time.
REST_SPREAD = 0.25


class HandOffLoop:
    """
    While there is work, each request settles the finished partitions and pulls new ones. Partitions that finish
    during a request are settled by the next. A pull waits at the service only if nothing is to be settled and
    nothing is ready. A pull is not repeated before all finished partitions are reported: their leases may have
    expired meanwhile, and the pull would hand out partitions that are finished but not reported.

    One thread settles and another waits for work.
    """

    def __init__(
        self,
        client: Client,
        *,
        holdings: Holdings,
        watch: ServiceWatch,
        tell: Tell,
        lock: threading.Lock,
        wait_seconds: int,
        tables: Sequence[str] | None,
        tasks: Sequence[str] | None,
        on_nothing_ready: Callable[[], None],
        on_hopeless: Callable[[BaseException], None],
    ) -> None:
        self._client = client
        self._holdings = holdings
        self._watch = watch
        self._tell = tell
        self._wait_seconds = wait_seconds
        self._chosen = PullChoice(tables=tables, tasks=tasks)
        #: Called when a pull waited for its full time and returned nothing. Not called if an earlier try of the
        #: same pull failed, because its answer may have been lost.
        self._on_nothing_ready = on_nothing_ready
        #: Called for an error that a retry cannot fix: a wrong URL, a refused token.
        self._on_hopeless = on_hopeless
        self._lock = lock
        self._to_settle = threading.Condition(lock)
        self._to_pull = threading.Condition(lock)
        self._closing = AbortSignal()
        self._ending = AbortSignal()
        #: Lower if a proxy in front of the service refused a request as too large.
        self._most_at_once = SETTLEMENTS_PER_REQUEST
        self._settles = False
        self._pulls = False
        self._rest_until = 0.0

    def threads(self) -> list[Callable[[], None]]:
        return [self._settle_reports, self._pull_when_free]

    @property
    def is_pulling(self) -> bool:
        """Whether a pull is under way, which may still bring partitions."""
        return self._pulls

    def advance(self) -> None:
        """With the lock: something is to be settled, or there is capacity."""
        if self._holdings.reports:
            self._to_settle.notify()
        else:
            self._to_pull.notify()

    def close(self) -> None:
        """Stops pulling. Settling continues."""
        self._closing.abort(_Closed())
        with self._lock:
            self._to_pull.notify()

    def end(self) -> None:
        """Gives up all requests that are not answered."""
        self._ending.abort(_Closed())
        with self._lock:
            self._to_settle.notify()
            self._to_pull.notify()

    def _settle_reports(self) -> None:
        reports = self._holdings.reports
        while True:
            with self._lock:
                while not reports and not self._ending.aborted:
                    self._to_settle.wait()
                if self._ending.aborted:
                    return
                self._settles = True
            self._settle_and_pull()
            with self._lock:
                self._settles = False
                self._holdings.changed()

    def _settle_and_pull(self) -> None:
        holdings = self._holdings
        settling: list[Report] = []
        key = new_idempotency_key()
        pull: PullChoice | None = None
        tries = 0

        def attempt() -> SettleAnswer:
            nonlocal pull, tries
            tries += 1
            while True:
                with self._lock:
                    while holdings.reports and len(settling) < self._most_at_once:
                        settling.append(holdings.reports.popleft())
                    holdings.settling = len(settling)
                    # Once a try has included a pull, each repetition includes it, even if no capacity is left:
                    # the answer may have been lost, and with it leases.
                    pull = self._next_pull() or pull
                    now = None if holdings.reports else pull
                try:
                    trace = shared_trace({report.partition.traceparent for report in settling})
                    client = self._client.once(self._ending, traceparent=trace)
                    settlements = [report.settlement for report in settling]
                    return client.settle(settlements, pull=now, idempotency_key=key)
                except BatonError as error:
                    if not is_too_large(error) or len(settling) == 1:
                        raise
                    self._most_at_once = (len(settling) + 1) // 2
                    with self._lock:
                        holdings.reports.extendleft(reversed(settling[self._most_at_once :]))
                        del settling[self._most_at_once :]

        try:
            answer = self._until_answered(attempt, self._ending)
        except BaseException as error:
            with self._lock:
                holdings.settling = 0
                holdings.gave_up(len(settling))
            if not self._ending.aborted:
                self._on_hopeless(error)
            return
        self._tell_settled(settling, answer)
        if answer["partitions"]:
            holdings.receive(answer["partitions"])
        with self._lock:
            holdings.settling = 0
        if not answer["partitions"] and pull is not None and self._wait_seconds == 0 and tries == 1:
            self._on_nothing_ready()

    def _tell_settled(self, settling: list[Report], answer: SettleAnswer) -> None:
        refusals = {refusal["leaseId"]: refusal for refusal in answer["refused"]}
        parked = set(answer.get("parked", ()))
        for partition, settlement, seconds in settling:
            lease_id, outcome = settlement["leaseId"], settlement["outcome"]
            refusal = refusals.get(lease_id)
            if refusal is None:
                reason = settlement.get("reason")
                self._tell(Settled(partition, outcome, lease_id in parked, reason, seconds))
            else:
                self._tell(Refused(partition, outcome, refusal["code"], refusal["detail"]))

    def _next_pull(self) -> PullChoice | None:
        """What to pull with a settlement. Nothing, while another pull is waiting at the service."""
        if self._pulls or self._closing.aborted:
            return None
        return self._choice()

    def _choice(self) -> PullChoice | None:
        amount = self._holdings.capacity()
        if amount is None:
            return None
        return amount._replace(tables=self._chosen.tables, tasks=self._chosen.tasks)

    def _pull_when_free(self) -> None:
        while True:
            with self._lock:
                choice = None
                while choice is None and not self._closing.aborted:
                    rest = self._rest_until - time.monotonic()
                    if rest > 0:
                        self._to_pull.wait(rest)
                    elif self._reports_first() or (choice := self._choice()) is None:
                        self._to_pull.wait()
                if choice is None:
                    return
                self._pulls = True
            self._pull_and_wait(choice)
            with self._lock:
                self._pulls = False
                self._holdings.changed()

    def _reports_first(self) -> bool:
        return self._settles or len(self._holdings.reports) > 0

    def _pull_and_wait(self, choice: PullChoice) -> None:
        key = new_idempotency_key()
        begun = time.monotonic()
        tries = 0
        client = self._client.once(self._closing)
        wait = self._wait_seconds or None

        def attempt() -> Pulled:
            nonlocal tries
            tries += 1
            with self._lock:
                while self._reports_first() and not self._closing.aborted:
                    self._to_pull.wait()
            self._closing.raise_if_aborted()
            return client.pull(
                batch=choice.batch,
                records=choice.records,
                wait_seconds=wait,
                tables=choice.tables,
                tasks=choice.tasks,
                idempotency_key=key,
            )

        try:
            partitions, retry_after_seconds, _ = self._until_answered(attempt, self._closing)
        except BaseException as error:
            if self._closing.aborted:
                self._reclaim(key)
            else:
                self._on_hopeless(error)
            return
        if partitions:
            self._holdings.receive(partitions)
        # An empty answer to a repeated pull may only mean that the leases of the first try have ended. Pull again
        # at once.
        elif tries == 1:
            if time.monotonic() - begun < self._wait_seconds / 2 or self._wait_seconds == 0:
                rest = REST_SECONDS if retry_after_seconds is None else retry_after_seconds
                self._rest_until = time.monotonic() + rest * (1 + random.random() * REST_SPREAD)
            self._on_nothing_ready()

    def _until_answered(self, attempt: Callable[[], T], signal: AbortSignal) -> T:
        answer = persist(
            attempt, for_seconds=float("inf"), signal=signal, on_failure=self._watch.failed
        )
        self._watch.answered()
        return answer

    def _reclaim(self, key: str) -> None:
        """
        An aborted pull may have been granted leases although its answer was never read. Repeating it with the
        same key returns them, so that they can be released instead of expiring.
        """
        try:
            client = self._client.once(self._ending, timeout_seconds=2)
            chosen = self._chosen
            partitions = client.pull(
                batch=1, tables=chosen.tables, tasks=chosen.tasks, idempotency_key=key
            ).partitions
        except BaseException:
            return  # The leases will expire.
        if partitions:
            self._holdings.receive(partitions)


class _Closed(Exception):
    """The reason of requests that the worker aborts."""
