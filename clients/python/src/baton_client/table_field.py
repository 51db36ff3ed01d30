"""The name of the table field: the wire may have its own, a program always has `computeTableName`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from .contract import TABLE_FIELD
from .protocol import PulledPartition

#: All other text fields that a partition can have on the wire.
_OTHER_TEXTS = {
    "taskId",
    "partition_name",
    "state",
    "holder",
    "leaseExpiresAt",
    "readyAt",
    "lastReason",
    "calledBackAt",
    "settledAt",
    "leasedAt",
    "expiresAt",
    "startedAt",
    "endedAt",
    "outcome",
    "reason",
    "traceparent",
}


class TableField:
    def __init__(self, name: str = TABLE_FIELD) -> None:
        self.name = name

    def to_wire(self, descriptor: object) -> object:
        """A descriptor that already has the wire name, or a value that is not a descriptor, is unchanged."""
        if not isinstance(descriptor, Mapping):
            return descriptor
        if self.name == TABLE_FIELD or TABLE_FIELD not in descriptor or self.name in descriptor:
            return descriptor if isinstance(descriptor, dict) else dict(descriptor)
        return _renamed(descriptor, TABLE_FIELD, self.name)

    def from_wire(self, received: dict[str, Any]) -> dict[str, Any]:
        if TABLE_FIELD in received:
            return received
        # A worker that was not configured with the name must not fail every partition because of it.
        name = self.name if self.name in received else _unknown_text_field(received)
        return received if name is None else _renamed(received, name, TABLE_FIELD)

    def rows(self, answer: dict[str, Any], field: str) -> dict[str, Any]:
        """The answer with its rows as programs read them."""
        answer[field] = [self.from_wire(row) for row in answer[field]]
        return answer

    def pulled(self, received: list[dict[str, Any]]) -> list[PulledPartition]:
        return [cast(PulledPartition, self.from_wire(one)) for one in received]


def _unknown_text_field(received: Mapping[str, object]) -> str | None:
    texts = [name for name, value in received.items() if isinstance(value, str) and name not in _OTHER_TEXTS]
    return texts[0] if len(texts) == 1 else None


def _renamed(value: Mapping[str, Any], before: str, after: str) -> dict[str, Any]:
    """Keeps the position of the field."""
    return {after if name == before else name: content for name, content in value.items()}
