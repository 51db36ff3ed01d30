"""Calls back the partitions of a computed task, however many there are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from .client import Client, client_of
from .contract import ContractCheck, UnknownFields, contract_error, described
from .errors import BatonError, CallBackProgress, ProblemError, is_too_large, problem_error
from .protocol import MAX_LEVELS_PER_CALL_BACK, Descriptor
from .transport import json_bytes


class Receipt(NamedTuple):
    """The result of a whole call-back."""

    task_id: str
    #: Partitions that were new.
    accepted: int
    #: Partitions that the service already had, unchanged. Includes those of a repeated request whose answer was lost.
    duplicates: int
    #: The number of requests that were sent.
    requests: int


def call_back(
    service: str | Sequence[str] | Client,
    descriptors: Iterable[Descriptor | Mapping[str, Any]],
    *,
    seal: bool | int | None = None,
    settings: Mapping[str, Any] | None = None,
    descriptors_per_request: int = 50_000,
    bytes_per_request: int = 8 * 2**20,
    unknown_fields: UnknownFields = "refuse",
    retry_for_seconds: float = 300,
    on_progress: Callable[[CallBackProgress], object] | None = None,
) -> Receipt:
    """
    Calls back partitions of one task, in ascending order of their level. Returns when all of them are durable.

    A list is checked as a whole before any of it is sent. Another iterable is checked and sent piece by piece as
    it yields. In both cases the call may be repeated after any failure: stored partitions count as duplicates.

    :param seal: The last request also seals the task. A number is the total number of partitions of the task.
    :param settings: The new settings of the task, by their names on the wire: `{"leaseSeconds": 1800}`.
    :param descriptors_per_request: A longer call-back is split. One request is stored all or nothing.
    :param bytes_per_request: A larger call-back is split, too. If the service refuses a body as too large,
        smaller requests are sent.
    :param unknown_fields: How the local check handles fields beyond the contract. Must match the configuration
        of the service, which checks the fields that it keeps.
    :param retry_for_seconds: How long each request is repeated while the service is unavailable. A restart of
        the service should not discard a computation that took hours.
    :param on_progress: Called after each request.
    :raises ContractError: with a pointer to each descriptor that breaks the contract
    :raises ConflictError: with a pointer to each descriptor that contradicts an accepted one
    """
    if isinstance(descriptors, (str, bytes, Mapping)) or not isinstance(descriptors, Iterable):
        detail = f"the body must be an array of partition descriptors, got {described(descriptors)}"
        raise contract_error([{"pointer": "", "detail": detail}], 1)
    client = client_of(service).with_options(retry_for_seconds=retry_for_seconds)
    check = ContractCheck(client.table_field.name, unknown_fields)
    sending = _Sending(client, seal, settings, on_progress)
    wire = (client.table_field.to_wire(descriptor) for descriptor in descriptors)
    limits = _Limits(descriptors_per_request, bytes_per_request)
    if isinstance(descriptors, Sequence):
        pieces: Iterable[_Piece] = list(_pieces(wire, limits, check))
        check.raise_if_broken()
    else:
        pieces = _checked_pieces(_pieces(wire, limits, check), check, sending)
    # Only when the next piece arrives is it known that the one before was not the last, which seals.
    held = None
    for piece in pieces:
        if held is not None:
            sending.send(held, is_last=False)
        held = piece if sending.seals else None
        if held is None:
            sending.send(piece, is_last=False)
    if held is not None:
        sending.send(held, is_last=True)
    return sending.receipt()


class _Piece(NamedTuple):
    """Consecutive descriptors that are sent in one request."""

    #: The position of the first one in the whole call-back.
    offset: int
    texts: list[bytes]


class _Limits(NamedTuple):
    descriptors: int
    bytes: int


def _checked_pieces(pieces: Iterable[_Piece], check: ContractCheck, sending: _Sending) -> Iterator[_Piece]:
    try:
        for piece in pieces:
            check.raise_if_broken()
            yield piece
        check.raise_if_broken()
    except BatonError as error:
        error.stored = sending.progress()
        raise


def _pieces(source: Iterable[object], limits: _Limits, check: ContractCheck) -> Iterator[_Piece]:
    """A descriptor above the byte limit becomes a piece by itself."""
    offset = 0
    size = 0
    texts: list[bytes] = []
    levels: set[object] = set()
    for descriptor in source:
        text = json_bytes(descriptor, f"descriptor /{offset + len(texts)}")
        level = descriptor.get("priorityLevel") if isinstance(descriptor, dict) else None
        level = level if isinstance(level, int) else None
        is_full = (
            len(texts) >= limits.descriptors
            or size + len(text) + 1 > limits.bytes
            or (len(levels) >= MAX_LEVELS_PER_CALL_BACK and level not in levels)
        )
        if texts and is_full:
            yield _Piece(offset, texts)
            offset += len(texts)
            size, texts, levels = 0, [], set()
        check.take(descriptor)
        levels.add(level)
        texts.append(text)
        size += len(text) + 1
    if texts:
        yield _Piece(offset, texts)


class _Sending:
    """Sends the pieces of one call-back, one after the other: their order is the order of the hand-off."""

    def __init__(
        self,
        client: Client,
        seal: bool | int | None,
        settings: Mapping[str, Any] | None,
        on_progress: Callable[[CallBackProgress], object] | None,
    ) -> None:
        self._client = client
        self._seal = seal
        self._settings = settings
        self._on_progress = on_progress
        self._task_id = ""
        self._sent = 0
        self._accepted = 0
        self._duplicates = 0
        self._requests = 0
        #: Learned from the service: a body with more descriptors is too large.
        self._most_at_once: float = float("inf")

    @property
    def seals(self) -> bool:
        return self._seal is not None and self._seal is not False

    def receipt(self) -> Receipt:
        return Receipt(self._task_id, self._accepted, self._duplicates, self._requests)

    def progress(self) -> CallBackProgress:
        return CallBackProgress(self._sent, self._accepted, self._duplicates)

    def send(self, piece: _Piece, *, is_last: bool) -> None:
        count = len(piece.texts)
        if count > self._most_at_once:
            middle = (count + 1) // 2
            self.send(_Piece(piece.offset, piece.texts[:middle]), is_last=False)
            self.send(_Piece(piece.offset + middle, piece.texts[middle:]), is_last=is_last)
            return
        body = b"[" + b",".join(piece.texts) + b"]"
        try:
            seal = self._seal if is_last else None
            answer = self._client.call_back_bytes(body, seal=seal, settings=self._settings)
        except BatonError as error:
            if is_too_large(error) and count > 1:
                self._most_at_once = (count + 1) // 2
                return self.send(piece, is_last=is_last)
            whole = _pointing_into_whole(error, piece.offset)
            whole.stored = self.progress()
            raise whole from error.__cause__
        self._task_id = answer["taskId"]
        self._accepted += answer["accepted"]
        self._duplicates += answer["duplicates"]
        self._sent += count
        self._requests += 1
        if self._on_progress is not None:
            self._on_progress(self.progress())


_OTHER_POSITION = re.compile(r"( names the same partition as |^taskId must be the same in the whole array: )/(\d+)")


def _pointing_into_whole(error: BatonError, offset: int) -> BatonError:
    """The same error with pointers into everything that the caller passed, instead of into one piece."""
    if offset == 0 or not isinstance(error, ProblemError):
        return error
    document = cast("dict[str, Any]", dict(error.problem))
    for places in ("errors", "conflicts"):
        if places in document:
            document[places] = [_moved(place, offset) for place in document[places]]
    return problem_error(document, error.retry_after_seconds)


def _moved(place: Mapping[str, Any], offset: int) -> dict[str, Any]:
    pointer = re.sub(r"^/(\d+)", lambda found: f"/{int(found[1]) + offset}", place["pointer"])
    detail = _OTHER_POSITION.sub(lambda found: f"{found[1]}/{int(found[2]) + offset}", place["detail"])
    return {**place, "pointer": pointer, "detail": detail}
