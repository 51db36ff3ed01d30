"""Paths and queries of requests."""

from __future__ import annotations

import urllib.parse
from typing import Any

from .contract import quoted
from .errors import UnsendableError


def task_path(task_id: str) -> str:
    return f"/tasks/{segment(task_id, 'task id')}"


def table_path(table: str) -> str:
    return f"/tables/{segment(table, 'table name')}"


def instance_path(instance_id: str) -> str:
    return f"/instances/{segment(instance_id, 'instance id')}"


def subscription_path(subscription_id: str) -> str:
    return f"/subscriptions/{segment(subscription_id, 'subscription id')}"


def segment(name: str, what: str) -> str:
    """The names refused here would make another path of a URL, so the service could not report the error."""
    if name == "":
        raise UnsendableError(f"the {what} must not be empty")
    if name in (".", ".."):
        raise UnsendableError(
            f"{quoted(name)} is not a valid {what}: it cannot be used as a path segment of a URL"
        )
    try:
        return urllib.parse.quote(name, safe="")
    except UnicodeEncodeError:
        raise UnsendableError(f"{quoted(name)} is not a valid {what}: it contains a lone surrogate") from None


def query_of(**parameters: Any) -> list[tuple[str, str]]:
    """Without those that are None. A sequence gives its parameter several times."""
    query = []
    for name, value in parameters.items():
        if isinstance(value, (list, tuple, set, frozenset)):
            query += [(name, str(one)) for one in value]
        elif value is not None:
            query.append((name, str(value)))
    return query
