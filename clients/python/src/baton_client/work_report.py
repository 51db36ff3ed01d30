"""What a handler says about its lease, until the service knows it."""

from __future__ import annotations

import math
import re
import threading
from typing import Any

from .errors import LeaseLostError
from .outcome import sendable
from .protocol import MAX_CHECKPOINT_BYTES, MAX_KEPT_NOTE_LENGTH, MAX_SAFE_INTEGER, Renewal

#: Reported progress is sent this often at most: each renewal is a write of the service.
PROGRESS_SECONDS = 10.0


class Saving:
    """A checkpoint on its way to the service."""

    def __init__(self, text: str | None) -> None:
        self.text = text
        self._ended = threading.Event()
        self._error: Exception | None = None

    def end(self, error: Exception | None = None) -> None:
        self._error = error
        self._ended.set()

    def wait(self) -> None:
        """Returns when it is stored, and raises if it cannot be."""
        self._ended.wait()
        if self._error is not None:
            raise self._error


class WorkReport:
    """All methods take the lock of the keeper of the leases."""

    def __init__(self) -> None:
        self._progress: dict[str, Any] | None = None
        self._savings: list[Saving] = []
        self._progress_sent_at = -math.inf

    @property
    def due_at(self) -> float:
        """When it must be sent."""
        if self._savings:
            return -math.inf
        return math.inf if self._progress is None else self._progress_sent_at + PROGRESS_SECONDS

    @property
    def has_checkpoint(self) -> bool:
        return bool(self._savings)

    def progress(self, records: int | None, note: str | None) -> None:
        self._progress = _sendable(records, note)

    def save(self, text: str | None) -> Saving:
        saving = Saving(text)
        self._savings.append(saving)
        return saving

    def end(self, lost: LeaseLostError | None = None) -> dict[str, str | None]:
        """The lease has ended. Returns what its settlement says of the checkpoint that was not sent."""
        unsaved = {"checkpoint": self._savings[-1].text} if self._savings else {}
        self._end_savings(len(self._savings), lost)
        return unsaved

    def refuse(self, detail: str) -> None:
        """The service does not take the checkpoint."""
        self._end_savings(len(self._savings), ValueError(detail))

    def renewal(self, lease_id: str) -> tuple[str | Renewal, _Sent]:
        """The element of a renew request, and what `taken` needs."""
        sent = _Sent(self._progress, len(self._savings))
        if sent.progress is None and sent.savings == 0:
            return lease_id, sent
        renewal: Renewal = {"leaseId": lease_id}
        if sent.progress is not None:
            renewal["progress"] = sent.progress
        if self._savings:
            renewal["checkpoint"] = self._savings[-1].text
        return renewal, sent

    def taken(self, sent: _Sent, now: float) -> None:
        if sent.progress is not None:
            self._progress_sent_at = now
            if self._progress is sent.progress:
                self._progress = None
        self._end_savings(sent.savings)

    def _end_savings(self, count: int, error: Exception | None = None) -> None:
        for saving in self._savings[:count]:
            saving.end(error)
        del self._savings[:count]


class _Sent:
    def __init__(self, progress: dict[str, Any] | None, savings: int) -> None:
        self.progress = progress
        self.savings = savings


def check_checkpoint(text: str | None) -> None:
    """Raises a ValueError if a checkpoint cannot be stored."""
    if text is None:
        return
    if "\0" in text or re.search("[\ud800-\udfff]", text):
        raise ValueError("a checkpoint must not contain NUL characters or lone surrogates")
    if len(text.encode()) > MAX_CHECKPOINT_BYTES:
        raise ValueError(f"a checkpoint has at most {MAX_CHECKPOINT_BYTES} bytes of UTF-8")


def _sendable(records: int | None, note: str | None) -> dict[str, Any]:
    """Progress is for people and estimates: what cannot be sent is left out, and fails no renewal."""
    progress: dict[str, Any] = {}
    if isinstance(records, int) and 0 <= records <= MAX_SAFE_INTEGER:
        progress["records"] = records
    if note is not None:
        progress["note"] = sendable(note, MAX_KEPT_NOTE_LENGTH)
    return progress
