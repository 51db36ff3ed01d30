"""Subscriptions to events of tasks, delivered by webhook or read by the client."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .paths import query_of, subscription_path
from .protocol import Json
from .transport import Answer, json_bytes


class Subscriptions:
    """`client.subscriptions`. Requests have the fields of the protocol."""

    def __init__(self, call: Callable[..., Answer], call_once: Callable[..., Answer]) -> None:
        self._call = call
        self._call_once = call_once

    def list(self) -> Sequence[Json]:
        rows: Sequence[Json] = self._call("GET", "/subscriptions", "subscriptions").body["subscriptions"]
        return rows

    def create(self, request: Mapping[str, Any] | None = None) -> Json:
        """Sent once, because a repetition would create a second subscription."""
        return _post(self._call_once, "/subscriptions", request or {})

    def remove(self, subscription_id: str) -> Json:
        """Removes a subscription, including its undelivered events."""
        return self._call("DELETE", subscription_path(subscription_id), "id").body

    def enable(self, subscription_id: str) -> Json:
        """Enables a disabled subscription again."""
        return _post(self._call, f"{subscription_path(subscription_id)}/enable", {})

    def rotate_secret(self, subscription_id: str, request: Mapping[str, Any] | None = None) -> Json:
        """Sent once, because a repetition would create another secret."""
        return _post(self._call_once, f"{subscription_path(subscription_id)}/rotate-secret", request or {})

    def deliveries(
        self, subscription_id: str, *, cursor: str | None = None, limit: int | None = None
    ) -> Json:
        """The deliveries of its events, newest first."""
        path, query = f"{subscription_path(subscription_id)}/deliveries", query_of(cursor=cursor, limit=limit)
        return self._call("GET", path, "deliveries", query=query).body

    def redeliver(self, subscription_id: str, event: int) -> Json:
        """Sends an event again."""
        return _post(self._call, f"{subscription_path(subscription_id)}/deliveries/{event}/redeliver", {})

    def events(self, subscription_id: str, *, after: str | None = None, limit: int | None = None) -> Json:
        """Its events after a position, oldest first. Empty if there are no more yet."""
        path, query = f"{subscription_path(subscription_id)}/events", query_of(after=after, limit=limit)
        return self._call("GET", path, "events", query=query).body


def _post(call: Callable[..., Answer], path: str, request: Mapping[str, Any]) -> Json:
    return call("POST", path, "id", body=json_bytes(request, "the request")).body
