"""
The shapes and limits of the wire. Values keep the names that they have there, and fields that this version does
not know stay in them.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

#: An answer whose fields docs/protocol.md and docs/protocol-views.md describe.
Json = dict[str, Any]

Outcome = Literal["done", "failed", "released"]


class Descriptor(TypedDict):
    """A partition as its producer describes it."""

    taskId: str
    computeTableName: str
    partition_name: str
    record_count: int
    priorityLevel: int


class _Lease(TypedDict):
    id: str
    attempt: int
    fencingToken: int
    expiresAt: str
    expiresInSeconds: float


class Lease(_Lease, total=False):
    checkpoint: str


class _Traced(TypedDict, total=False):
    traceparent: str


class PulledPartition(Descriptor, _Traced):
    #: None if the service delivers at most once.
    lease: Lease | None


class CallBackAnswer(TypedDict):
    taskId: str
    accepted: int
    duplicates: int


class _Settled(TypedDict):
    leaseId: str
    outcome: Outcome


class Settlement(_Settled, total=False):
    reason: str
    retryAfterSeconds: float
    final: bool
    records: int
    checkpoint: str | None


class _Renewal(TypedDict):
    leaseId: str


class Renewal(_Renewal, total=False):
    """A lease to renew, and how far its work is."""

    #: `records` and `note`.
    progress: Json
    checkpoint: str | None


class Refusal(TypedDict):
    leaseId: str
    code: str
    detail: str


class _SettleAnswer(TypedDict):
    settled: list[str]
    refused: list[Refusal]
    partitions: list[PulledPartition]


class SettleAnswer(_SettleAnswer, total=False):
    parked: list[str]


class RenewedLease(TypedDict):
    leaseId: str
    expiresAt: str
    expiresInSeconds: float


class RenewAnswer(TypedDict):
    renewed: list[RenewedLease]
    refused: list[Refusal]


class Violation(TypedDict):
    pointer: str
    detail: str


class Conflict(TypedDict):
    pointer: str
    partition_name: str
    detail: str


class _Problem(TypedDict):
    code: str
    detail: str


class Problem(_Problem, total=False):
    type: str
    title: str
    status: int
    retryable: bool
    errors: list[Violation]
    errorsOmitted: int
    conflicts: list[Conflict]
    conflictsOmitted: int


MAX_SAFE_INTEGER = 2**53 - 1
MAX_TASK_ID_LENGTH = 1024
MAX_TABLE_NAME_LENGTH = 1024
MAX_PARTITION_NAME_LENGTH = MAX_TASK_ID_LENGTH + 64
MAX_INSTANCE_ID_LENGTH = 256
MAX_LEVELS_PER_CALL_BACK = 10_000
MAX_LISTED_VIOLATIONS = 100
MAX_BATCH = 1000
MAX_WAIT_SECONDS = 60
MAX_LEASES_PER_REQUEST = 10_000
MAX_CHECKPOINT_BYTES = 4096
MAX_KEPT_NOTE_LENGTH = 256
MAX_KEPT_REASON_LENGTH = 4096
MAX_RETRY_AFTER_SECONDS = 86_400
