"""How the work on a partition ended, and what is sent about it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from .protocol import MAX_KEPT_REASON_LENGTH, MAX_RETRY_AFTER_SECONDS, MAX_SAFE_INTEGER, Settlement


@dataclass(frozen=True)
class Done:
    """The partition is finished. A handler that returns nothing has the same effect."""

    #: The number of processed records. The service shows where it differs from the declared number.
    records: int | None = None


class Failed(Exception):
    """
    Raised or returned by a handler: the attempt failed, and counts as an attempt of the partition. A handler
    that raises anything else has the same effect.

    :param final: No further attempt would help: park the partition now.
    :param retry_after_seconds: Replaces the service's back-off before the next attempt.
    """

    def __init__(
        self, reason: str, *, final: bool = False, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(reason)
        self.final = final
        self.retry_after_seconds = retry_after_seconds


class Released(Exception):
    """
    Raised or returned by a handler: the partition is released without counting an attempt.

    :param retry_after_seconds: How long to wait before the partition is handed out again.
    """

    def __init__(self, reason: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after_seconds = retry_after_seconds


Outcome = Done | Failed | Released

STOPPED = "the worker stopped"
UNREADABLE = "the reason cannot be converted to text"
#: The most errors of a chain of causes.
_MOST_ERRORS = 10


def outcome_of_result(result: object) -> Outcome:
    """The outcome for what a handler returned. Any value that is not an outcome means done."""
    return result if isinstance(result, (Done, Failed, Released)) else Done()


def outcome_of_error(error: BaseException, was_aborted: bool) -> Outcome:
    """
    The outcome for what a handler raised. An error after an abort means released, not failed, unless the handler
    raised an explicit `Failed` or `Released`.
    """
    if isinstance(error, (Failed, Released)):
        return error
    return Released(STOPPED) if was_aborted else Failed(_reason_of(error))


def _reason_of(error: BaseException) -> str:
    """The error and its causes, for a person. A chain of causes may be circular."""
    chain: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in chain and len(chain) < _MOST_ERRORS:
        chain.append(following)
        following = following.__cause__
    return "; caused by ".join(map(_text_of, chain))


def _text_of(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        return UNREADABLE
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def settlement_of(lease_id: str, outcome: Outcome) -> Settlement:
    """
    The settlement of a lease. Converts every outcome to one that the service accepts: settlements are sent in
    batches, and an invalid character must not make one fail.
    """
    if isinstance(outcome, Done):
        done: Settlement = {"leaseId": lease_id, "outcome": "done"}
        if _is_count(outcome.records):
            done["records"] = int(outcome.records)  # type: ignore[arg-type]
        return done
    settlement: Settlement = {
        "leaseId": lease_id,
        "outcome": "failed" if isinstance(outcome, Failed) else "released",
        "reason": sendable(outcome.args[0] if outcome.args else "", MAX_KEPT_REASON_LENGTH),
    }
    if isinstance(outcome, Failed) and outcome.final:
        settlement["final"] = True
    delay = outcome.retry_after_seconds
    if isinstance(delay, (int, float)) and not math.isnan(delay) and delay >= 0:
        settlement["retryAfterSeconds"] = min(delay, MAX_RETRY_AFTER_SECONDS)
    return settlement


def _is_count(value: Any) -> bool:
    try:
        return value is not None and value == int(value) and 0 <= value <= MAX_SAFE_INTEGER
    except (TypeError, ValueError, OverflowError):
        return False


def sendable(value: object, most: int) -> str:
    """A text that the service takes."""
    try:
        text = str(value)
    except Exception:
        text = UNREADABLE
    text = re.sub("[\ud800-\udfff]", "\ufffd", text.replace("\0", ""))
    return text if len(text) <= most else f"{text[: most - 1]}…"
