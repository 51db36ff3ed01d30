"""Calls partitions back to Baton and works on what it hands out."""

from . import events
from .producer import Receipt, call_back
from .client import Client, Pulled, PullChoice
from .errors import (
    BatonError,
    CallBackProgress,
    ConflictError,
    ContractError,
    LeaseLostError,
    ProblemError,
    UnexpectedAnswerError,
    UnreachableError,
    UnsendableError,
    WorkerStoppedError,
)
from .event_stream import StreamEvent
from .events import WorkerEvent
from .outcome import Done, Failed, Released
from .partition import Partition
from .protocol import Descriptor, Lease, PulledPartition, Renewal, RenewAnswer, SettleAnswer, Settlement
from .retry import FailedTry
from .transport import RequestReport
from .worker import Worker

__all__ = [
    "BatonError",
    "CallBackProgress",
    "Client",
    "ConflictError",
    "ContractError",
    "Descriptor",
    "Done",
    "Failed",
    "FailedTry",
    "Lease",
    "LeaseLostError",
    "Partition",
    "ProblemError",
    "PullChoice",
    "Pulled",
    "PulledPartition",
    "Receipt",
    "Released",
    "RenewAnswer",
    "Renewal",
    "RequestReport",
    "SettleAnswer",
    "Settlement",
    "StreamEvent",
    "UnexpectedAnswerError",
    "UnreachableError",
    "UnsendableError",
    "Worker",
    "WorkerEvent",
    "WorkerStoppedError",
    "call_back",
    "events",
]
