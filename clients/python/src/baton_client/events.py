"""The events of a worker, in the order in which they happen. For logs, metrics and traces."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Union

from .errors import BatonError, LeaseLostError
from .partition import Partition
from .retry import FailedTry


@dataclass(frozen=True)
class Pulled:
    """Partitions were pulled."""

    kind: ClassVar[str] = "pulled"
    partitions: tuple[Partition, ...]


@dataclass(frozen=True)
class Started:
    """The handler was called."""

    kind: ClassVar[str] = "started"
    partition: Partition


@dataclass(frozen=True)
class Threw:
    """
    The handler raised. The partition will be settled as failed; as released after an abort or a raised
    `Released`; and not at all if the service reported that the lease is lost.
    """

    kind: ClassVar[str] = "threw"
    partition: Partition
    error: BaseException


@dataclass(frozen=True)
class Settled:
    """The service accepted the settlement."""

    kind: ClassVar[str] = "settled"
    partition: Partition
    outcome: str
    #: Whether the partition is parked: it has failed for good and waits for an operator.
    parked: bool
    reason: str | None
    #: From the call of the handler to its end.
    seconds: float


@dataclass(frozen=True)
class Unreported:
    """
    The handler ended, and the outcome is not sent: the service delivers at most once, so the partition came
    without a lease and counted as done when it was handed out.
    """

    kind: ClassVar[str] = "unreported"
    partition: Partition
    outcome: str
    reason: str | None
    #: From the call of the handler to its end. Zero if it was never called.
    seconds: float


@dataclass(frozen=True)
class Refused:
    """The service refused the settlement: the work under this lease does not count."""

    kind: ClassVar[str] = "refused"
    partition: Partition
    outcome: str
    code: str
    detail: str


@dataclass(frozen=True)
class Lost:
    """The lease was lost while this worker held the partition, which was aborted."""

    kind: ClassVar[str] = "lost"
    partition: Partition
    error: LeaseLostError


@dataclass(frozen=True)
class Renewed:
    """Leases were extended."""

    kind: ClassVar[str] = "renewed"
    leases: int


@dataclass(frozen=True)
class Away:
    """A request failed and will be repeated."""

    kind: ClassVar[str] = "away"
    error: BatonError
    #: The number of failures of this request in a row.
    failures: int
    pause_seconds: float


@dataclass(frozen=True)
class Back:
    """The service answers again."""

    kind: ClassVar[str] = "back"
    away_seconds: float


@dataclass(frozen=True)
class Stopping:
    """The worker stopped pulling. `running` handlers have not ended yet."""

    kind: ClassVar[str] = "stopping"
    running: int


@dataclass(frozen=True)
class Stopped:
    """
    The worker has stopped. `abandoned` partitions were neither settled nor released: their leases will expire.
    With an `error`, the worker could not continue: a wrong URL, a refused token.
    """

    kind: ClassVar[str] = "stopped"
    abandoned: int
    error: BaseException | None


WorkerEvent = Union[
    Pulled, Started, Threw, Settled, Unreported, Refused, Lost, Renewed, Away, Back, Stopping, Stopped
]
Tell = Callable[[WorkerEvent], None]


class ServiceWatch:
    """Reports when the service becomes unavailable and when it is back, whichever request notices."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._away_since: float | None = None

    def failed(self, failed: FailedTry) -> None:
        if self._away_since is None:
            self._away_since = time.monotonic()
        self._tell(Away(failed.error, failed.failures, failed.pause_seconds))

    def answered(self) -> None:
        since, self._away_since = self._away_since, None
        if since is not None:
            self._tell(Back(time.monotonic() - since))
