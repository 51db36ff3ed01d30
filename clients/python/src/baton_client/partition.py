"""A partition that a worker holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, cast

from .protocol import Lease, PulledPartition
from .retry import AbortSignal
from .work_report import Saving, check_checkpoint


class _Keeper(Protocol):
    def progress(self, lease_id: str, records: int | None, note: str | None) -> None: ...
    def save(self, lease_id: str, checkpoint: str | None) -> Saving | None: ...


class Partition(Mapping[str, Any]):
    """
    What a handler gets. The fields of the contract are attributes; `partition["name"]` reads every field of the
    answer by its name on the wire, for instance those beyond the contract.

    When the lease is lost, or the worker is stopping and the time to finish is over, the partition is *aborted*.
    Then `raise_if_aborted` and `wait` raise a `LeaseLostError` or a `WorkerStoppedError`. Call one of them
    between pieces of work: a thread cannot be interrupted from outside without breaking what it is doing. After
    a lost lease, another worker may have the partition.
    """

    def __init__(self, pulled: PulledPartition, keeper: _Keeper) -> None:
        self._keeper = keeper
        self._fields = cast("dict[str, Any]", pulled)
        self._signal = AbortSignal()

    @property
    def task_id(self) -> str:
        return cast(str, self._fields["taskId"])

    @property
    def compute_table_name(self) -> str:
        """The table that contains the records, as `schema.table`."""
        return cast(str, self._fields["computeTableName"])

    @property
    def partition_name(self) -> str:
        return cast(str, self._fields["partition_name"])

    @property
    def record_count(self) -> int:
        return cast(int, self._fields["record_count"])

    @property
    def priority_level(self) -> int:
        return cast(int, self._fields["priorityLevel"])

    @property
    def lease(self) -> Lease | None:
        """The lease as it was received. None if the service delivers at most once."""
        return cast("Lease | None", self._fields["lease"])

    @property
    def attempt(self) -> int:
        """The number of this attempt at the partition, starting with 1."""
        return 1 if self.lease is None else self.lease["attempt"]

    @property
    def checkpoint(self) -> str | None:
        """What the last worker of the partition saved to go on from."""
        return None if self.lease is None else self.lease.get("checkpoint")

    def progress(self, records: int | None = None, note: str | None = None) -> None:
        """
        Reports how far the work is. Sent with the next renewal, every ten seconds at most; a later report
        replaces an earlier one.
        """
        if self.lease is not None:
            self._keeper.progress(self.lease["id"], records, note)

    def save_checkpoint(self, checkpoint: str | None, *, wait: bool = True) -> None:
        """
        Saves a text of at most 4,096 bytes of UTF-8, which the next lease of the partition carries; None clears
        it. Sent at once. Returns when it is stored, or at once if `wait` is false: what was not sent when the
        handler fails or releases goes with its settlement. Raises a `LeaseLostError` if the lease was lost.
        """
        check_checkpoint(checkpoint)
        if self.lease is None:
            return
        saving = self._keeper.save(self.lease["id"], checkpoint)
        if saving is None:
            self.raise_if_aborted()
        elif wait:
            saving.wait()

    @property
    def traceparent(self) -> str | None:
        """The trace of the call-back, if it had one."""
        return self._fields.get("traceparent")

    @property
    def aborted(self) -> bool:
        return self._signal.aborted

    def raise_if_aborted(self) -> None:
        self._signal.raise_if_aborted()

    def wait(self, seconds: float | None = None) -> None:
        """Sleeps, but raises as soon as the partition is aborted."""
        self._signal.wait(seconds)

    def on_abort(self, act: Callable[[], object]) -> None:
        """
        Calls this in another thread when the partition is aborted, to end a call that waits: for instance
        `partition.on_abort(connection.cancel)` for a query of psycopg.
        """
        self._signal.listen(act)

    def __getitem__(self, field: str) -> Any:
        return self._fields[field]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return f"<Partition {self.partition_name}>"
