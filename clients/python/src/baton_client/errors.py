"""The errors that calls of this library raise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from .protocol import Conflict, Problem, Violation


class CallBackProgress(NamedTuple):
    """How much of a call-back the service has acknowledged."""

    sent: int
    #: The number of sent descriptors that were new.
    accepted: int
    #: The number of sent descriptors that the service already had, unchanged.
    duplicates: int


class BatonError(Exception):
    """The base class of all errors of this library."""

    def __init__(
        self, text: str, *, retryable: bool = False, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(text)
        #: Whether the same call, unchanged, may succeed later.
        self.retryable = retryable
        #: The retry delay that the service requested, if it did.
        self.retry_after_seconds = retry_after_seconds
        #: For a call-back in several requests: what the service had stored before the error.
        self.stored: CallBackProgress | None = None


class ProblemError(BatonError):
    """The service answered with a problem document (RFC 9457)."""

    def __init__(self, problem: Problem, retry_after_seconds: float | None = None) -> None:
        super().__init__(
            f"{problem.get('title', '')}: {problem['detail']}",
            retryable=problem.get("retryable", False),
            retry_after_seconds=retry_after_seconds,
        )
        #: The whole problem document.
        self.problem = problem
        #: The error code, from the registry of codes.
        self.code = problem["code"]
        #: The HTTP status.
        self.status = problem.get("status", 0)


class ContractError(ProblemError):
    """The call-back breaks the contract. The client found it before sending, or the service did."""

    def __init__(self, problem: Problem, found_by: Literal["client", "service"] = "service") -> None:
        super().__init__(problem)
        #: What found the violations: the client, which then sent none of what it checked, or the service.
        self.found_by = found_by
        #: Each violation, with a JSON Pointer into what the caller passed. At most a hundred.
        self.violations: Sequence[Violation] = problem.get("errors", [])
        #: The number of all violations, including those that are not listed.
        self.violation_count = len(self.violations) + problem.get("errorsOmitted", 0)
        if self.violations:
            first = self.violations[0]
            others = f" (and {self.violation_count - 1} more)" if self.violation_count > 1 else ""
            place = first["pointer"] or "the whole"
            self.args = (f"{problem.get('title', '')}: {place}: {first['detail']}{others}",)


class ConflictError(ProblemError):
    """The service already has some of the partitions, with other content."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        #: Each partition that contradicts an accepted one, with a JSON Pointer into what the caller passed.
        self.conflicts: Sequence[Conflict] = problem.get("conflicts", [])
        #: The number of all conflicts, including those that are not listed.
        self.conflict_count = len(self.conflicts) + problem.get("conflictsOmitted", 0)


class UnreachableError(BatonError):
    """
    No answer arrived: the service or the network is unavailable, or the request timed out. The request may
    still have taken effect.
    """

    def __init__(self, text: str, *, connected: bool = True) -> None:
        super().__init__(text, retryable=True)
        #: False if no connection was made, so that the request has had no effect.
        self.connected = connected


class UnsendableError(BatonError):
    """The request cannot be sent: an invalid header, a task id that a URL cannot contain, a value without a JSON form."""


#: Request timeout, too early, too many requests: temporary answers of proxies.
_PASSING = {408, 425, 429}


class UnexpectedAnswerError(BatonError):
    """The answer is not from Baton: a proxy's error page, or a wrong URL."""

    def __init__(self, text: str, status: int, retry_after_seconds: float | None = None) -> None:
        retryable = status >= 500 or status in _PASSING
        super().__init__(text, retryable=retryable, retry_after_seconds=retry_after_seconds)
        self.status = status


class LeaseLostError(BatonError):
    """Another worker has the partition, or may soon have it."""

    def __init__(self, lease_id: str, code: str, detail: str) -> None:
        super().__init__(detail)
        self.lease_id = lease_id
        #: The service's refusal, or `lease_unrenewed` if the service could not be reached in time.
        self.code = code


class WorkerStoppedError(BatonError):
    """The worker is stopping, and the time to finish is over."""

    def __init__(self) -> None:
        super().__init__("the worker is stopping and the time limit for running handlers has passed")


def problem_error(problem: Mapping[str, Any], retry_after_seconds: float | None = None) -> ProblemError:
    """The error class that matches a problem document."""
    document: Problem = problem  # type: ignore[assignment]
    if document["code"] == "contract_violation":
        return ContractError(document)
    if document["code"] == "partition_conflict":
        return ConflictError(document)
    return ProblemError(document, retry_after_seconds)


def is_too_large(error: BaseException) -> bool:
    """Whether the service, or a proxy in front of it, refused the body as too large."""
    return getattr(error, "status", None) == 413
