"""The operations of the service as typed calls."""

from __future__ import annotations

import copy
import secrets
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, cast

from .contract import TABLE_FIELD
from .event_stream import LONGEST_SILENCE_SECONDS, StreamEvent, follow_events
from .paths import instance_path, query_of, segment, table_path, task_path
from .protocol import (
    CallBackAnswer,
    Descriptor,
    Json,
    PulledPartition,
    Renewal,
    RenewAnswer,
    SettleAnswer,
    Settlement,
)
from .retry import AbortSignal, FailedTry, persist
from .subscriptions import Subscriptions
from .table_field import TableField
from .transport import Answer, Request, RequestReport, Transport, json_bytes, parsed

T = TypeVar("T")


class Pulled(NamedTuple):
    """The answer to a pull."""

    #: In hand-off order. Empty if nothing is ready.
    partitions: list[PulledPartition]
    #: If nothing was ready: how long to wait before the next pull.
    retry_after_seconds: float | None
    #: The whole answer.
    answer: Json


class PullChoice(NamedTuple):
    """How much to pull, and what."""

    #: The most partitions to pull, up to 1000. The default is 1, or 1000 if `records` is given.
    batch: int | None = None
    #: Stop once the pulled partitions have at least this many records in total. One is always given.
    records: int | None = None
    #: How long to wait if nothing is ready, up to 60 seconds.
    wait_seconds: int | None = None
    #: Any of these compute tables, as `schema.table`. At most 50.
    tables: Sequence[str] | None = None
    #: Any of these tasks. At most 50.
    tasks: Sequence[str] | None = None

    def headers(self) -> dict[str, str]:
        preferences = {"batch": self.batch, "records": self.records, "wait": self.wait_seconds}
        given = [f"{name}={value}" for name, value in preferences.items() if value is not None]
        return {"prefer": ", ".join(given)} if given else {}

    def query(self) -> list[tuple[str, str]]:
        return query_of(table=self.tables, task=self.tasks)


def new_idempotency_key() -> str:
    """Begins with the time, so that databases store recent keys next to each other."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(12)}"


class Client:
    """
    All operations for producers and workers. A call is repeated where that is safe, and raises a `BatonError`.
    May be used by several threads.

    Answers are dictionaries with the names of the protocol; fields that this version does not know stay in them.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        token: str | Callable[[], str] | None = None,
        instance_id: str | None = None,
        table_field: str = TABLE_FIELD,
        timeout_seconds: float = 30,
        retry_for_seconds: float = 30,
        headers: Mapping[str, str] | Callable[[], Mapping[str, str]] | None = None,
        ssl_context: ssl.SSLContext | None = None,
        on_failure: Callable[[FailedTry], object] | None = None,
        on_request: Callable[[RequestReport], object] | None = None,
    ) -> None:
        """
        :param url: The base URL of the service, with its path if it is mounted under one. For a service with
            several nodes, a list of URLs: if one is unavailable, the next is used, and if the leader is one of
            them, requests go to it.
        :param token: Sent as `Authorization: Bearer`. A function is called before each request.
        :param instance_id: The name of this client (`X-Instance-Id`), shown to operators.
        :param table_field: The name of the table field on the wire, if the deployment has its own. Programs
            always read and write `computeTableName`.
        :param timeout_seconds: The timeout of one request, in addition to the requested wait time.
        :param retry_for_seconds: How long a call is repeated while the service is unavailable or answers with a
            retry delay. Zero means a single try. Repeating is safe: a pull has an `Idempotency-Key`, and every
            other call is idempotent. `retry` with `done`, and `create` and `rotate_secret` of
            `subscriptions`, are tried once.
        :param headers: Headers of each request, for instance the `traceparent` of the current trace.
        :param ssl_context: For `https`; by default that of `ssl.create_default_context()`.
        :param on_failure: Called for each request that failed and will be repeated.
        :param on_request: Called when a request has ended, including each failed one that will be repeated.
        """
        self._transport = Transport(
            url,
            token=token,
            instance_id=instance_id,
            headers=headers,
            timeout_seconds=timeout_seconds,
            ssl_context=ssl_context,
            on_request=on_request,
        )
        self.table_field = TableField(table_field)
        self._retry_for_seconds = retry_for_seconds
        self._timeout_seconds: float | None = None
        self._traceparent: str | None = None
        self._on_failure = on_failure
        self._signal: AbortSignal | None = None

    def with_options(
        self,
        *,
        retry_for_seconds: float | None = None,
        timeout_seconds: float | None = None,
        traceparent: str | None = None,
        on_failure: Callable[[FailedTry], object] | None = None,
    ) -> Client:
        """The same client with other options for its calls: `client.with_options(retry_for_seconds=0).pull()`."""
        changed = copy.copy(self)
        if retry_for_seconds is not None:
            changed._retry_for_seconds = retry_for_seconds
        if timeout_seconds is not None:
            changed._timeout_seconds = timeout_seconds
        if traceparent is not None:
            changed._traceparent = traceparent
        if on_failure is not None:
            changed._on_failure = on_failure
        return changed

    def once(
        self, signal: AbortSignal | None, timeout_seconds: float | None = None, traceparent: str | None = None
    ) -> Client:
        """For workers, which repeat requests by their own rules."""
        changed = self.with_options(
            retry_for_seconds=0, timeout_seconds=timeout_seconds, traceparent=traceparent
        )
        changed._signal = signal
        return changed

    def close(self) -> None:
        """Closes idle connections. The client can still be used."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The hand-off

    def call_back(
        self,
        descriptors: Iterable[Descriptor | Mapping[str, Any]],
        *,
        seal: bool | int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> CallBackAnswer:
        """
        Sends one array in one request, all or nothing. The function `call_back` also checks it and splits one
        that is too large.

        :param seal: Also seals the task. A number is the total number of partitions of the task.
        :param settings: Settings of the task to change, by their names on the wire.
            None goes back to the value of the service.
        """
        wire = [self.table_field.to_wire(descriptor) for descriptor in descriptors]
        return self.call_back_bytes(json_bytes(wire, "the call-back"), seal=seal, settings=settings)

    def call_back_bytes(
        self, body: bytes, *, seal: bool | int | None = None, settings: Mapping[str, Any] | None = None
    ) -> CallBackAnswer:
        """The same for an array that is already JSON."""
        headers = {**_sealing(seal), **_setting(settings)}
        answer = self._call("POST", "/call-back", "accepted", body=body, headers=headers)
        return cast(CallBackAnswer, answer.body)

    def pull(
        self,
        *,
        batch: int | None = None,
        records: int | None = None,
        wait_seconds: int | None = None,
        tables: Sequence[str] | None = None,
        tasks: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> Pulled:
        """Takes partitions under leases. The same key again gets the same leases, never new ones."""
        choice = PullChoice(batch, records, wait_seconds, tables, tasks)
        headers = choice.headers()
        headers["idempotency-key"] = idempotency_key or new_idempotency_key()
        answer = self._call(
            "GET",
            "/pull",
            "partitions",
            query=choice.query(),
            headers=headers,
            wait_seconds=wait_seconds or 0,
        )
        partitions = self.table_field.pulled(answer.body["partitions"])
        return Pulled(partitions, answer.retry_after_seconds, answer.body)

    def settle(
        self,
        settlements: Sequence[Settlement],
        *,
        pull: PullChoice | None = None,
        idempotency_key: str | None = None,
    ) -> SettleAnswer:
        """Reports how the work under leases ended. With `pull`, also takes the next partitions."""
        headers: dict[str, str] = {}
        query: list[tuple[str, str]] = []
        if pull is not None:
            if pull[:3] == (None, None, None):
                pull = pull._replace(batch=1)
            headers = pull.headers()
            headers["idempotency-key"] = idempotency_key or new_idempotency_key()
            query = pull.query()
        answer = self._call(
            "POST",
            "/settle",
            "settled",
            query=query,
            headers=headers,
            body=json_bytes(settlements, "the settlement"),
            wait_seconds=(pull.wait_seconds if pull is not None else None) or 0,
        ).body
        answer["partitions"] = self.table_field.pulled(answer["partitions"])
        return cast(SettleAnswer, answer)

    def renew(self, lease_ids: Sequence[str | Renewal]) -> RenewAnswer:
        """Extends leases by their full duration from now."""
        body = json_bytes(lease_ids, "the list of leases")
        return cast(RenewAnswer, self._call("POST", "/renew", "renewed", body=body).body)

    # Views

    def tasks(
        self,
        *,
        state: str | None = None,
        parked: bool = False,
        search: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Json:
        """The tasks, newest first. `next` of the answer is the cursor of the next page."""
        only_parked = "true" if parked else None
        return self._get(
            "/tasks", "tasks", state=state, parked=only_parked, search=search, cursor=cursor, limit=limit
        )

    def task(self, task_id: str) -> Json:
        """The state and progress of a task."""
        return self._get(task_path(task_id), "taskId")

    def partitions(
        self,
        task_id: str,
        *,
        state: str | None = None,
        level: int | None = None,
        indexes: tuple[int, int] | None = None,
        name: str | None = None,
        holder: str | None = None,
        reason: str | None = None,
        order: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Json:
        """
        The partitions of a task, by level and index, or with `order="unfinished"` finished ones last.

        :param indexes: The first and the last index, of the level.
        :param name: A name, or the beginning of names followed by `*`.
        :param holder: Only those of which this instance holds the lease.
        :param reason: Only those whose last failure is of the group with this `key` in `failures` of the task.
        """
        span = None if indexes is None else "-".join(map(str, indexes))
        answer = self._get(
            f"{task_path(task_id)}/partitions",
            "partitions",
            state=state,
            level=level,
            indexes=span,
            name=name,
            holder=holder,
            reason=reason,
            order=order,
            cursor=cursor,
            limit=limit,
        )
        return self.table_field.rows(answer, "partitions")

    def feed(self, task_id: str) -> Json:
        """What happened to a task, newest first."""
        return self._get(f"{task_path(task_id)}/feed", "entries")

    def grid(self, task_id: str, *, level: int | None = None, cells: int | None = None) -> Json:
        """The states of the partitions of one level, counted by ranges of indexes."""
        return self._get(f"{task_path(task_id)}/grid", "cells", level=level, cells=cells)

    def manifest(
        self, task_id: str, *, state: str | None = None, level: int | None = None
    ) -> Iterator[Json]:
        """All partitions of a task, or those of a state or level, in one answer. Not repeated once it began."""
        query = query_of(state=state, level=level)
        request = self._request("GET", f"{task_path(task_id)}/manifest", "", query=query)
        for line in self._begun(lambda: self._transport.lines(request)):
            if line.strip():
                yield self.table_field.from_wire(parsed(line, 200, "partition_name"))

    def throughput(self, task_id: str, **query: str | int | None) -> Json:
        """The throughput of a task by minute or hour. `query` are the parameters of the route."""
        path = f"{task_path(task_id)}/throughput"
        return self._get(path, "points", **query)

    def throughput_of_all(self, **query: str | int | None) -> Json:
        """The throughput of all tasks together."""
        return self._get("/throughput", "points", **query)

    def totals(self) -> Json:
        """The totals of all unfinished tasks."""
        return self._get("/totals", "complete")

    def scale(
        self,
        *,
        target_seconds: float | None = None,
        tables: Sequence[str] | None = None,
        tasks: Sequence[str] | None = None,
    ) -> Json:
        """The backlog, and the number of workers that would finish it within a target time."""
        return self._get("/scale", "desiredWorkers", table=tables, task=tasks, target=target_seconds)

    def instance_status(self, instance_id: str | None = None) -> Json:
        """The status of an instance; without a name, of the node that answers."""
        return self._get("/test/instance-status", "instanceId", instanceId=instance_id)

    def instances(
        self,
        *,
        search: str | None = None,
        status: str | None = None,
        sort: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Json:
        """All known instances, by name, or those that match. A short page is not necessarily the last one."""
        return self._get(
            "/instances", "instances", search=search, status=status, sort=sort, cursor=cursor, limit=limit
        )

    def instance_leases(
        self, instance_id: str, *, cursor: str | None = None, limit: int | None = None
    ) -> Json:
        """The leases that an instance holds, the first to expire first."""
        answer = self._get(f"{instance_path(instance_id)}/leases", "leases", cursor=cursor, limit=limit)
        return self.table_field.rows(answer, "leases")

    def instance_attempts(self, instance_id: str) -> Json:
        """The last attempts of an instance, the last to end first, since the node that leads took over."""
        answer = self._get(f"{instance_path(instance_id)}/attempts", "attempts")
        return self.table_field.rows(answer, "attempts")

    def tables(self, *, cursor: str | None = None, limit: int | None = None) -> Json:
        """The compute tables with open work or settings, by name."""
        return self._get("/tables", "tables", cursor=cursor, limit=limit)

    def table(self, table: str) -> Json:
        """What runs and waits on a compute table over all tasks, and its settings."""
        return self._get(table_path(table), "table")

    def audit(
        self,
        *,
        task: str | None = None,
        name: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Json:
        """What was changed by requests, and by whom, newest first: of one task or one sender, or all."""
        return self._get("/audit", "entries", task=task, name=name, cursor=cursor, limit=limit)

    def node_audit(self, *, cursor: str | None = None, limit: int | None = None) -> Json:
        """Refused tokens and reloaded files of the node that answers, since its start, newest first."""
        return self._get("/audit/node", "entries", cursor=cursor, limit=limit)

    def whoami(self) -> Json:
        """The name and the roles with which the service sees this client."""
        return self._get("/whoami", "roles")

    def ready(self) -> None:
        """Returns when the service answers and its store accepts writes. Needs no token."""
        self._call("GET", "/readyz", "status")

    def events(self) -> Iterator[StreamEvent]:
        """The events of the service from now on, without end. After a `reset`, some may be missing."""

        def opened(last_id: str | None) -> Iterator[bytes]:
            headers = {"accept": "text/event-stream"}
            if last_id is not None:
                headers["last-event-id"] = last_id
            patient = self.with_options(timeout_seconds=LONGEST_SILENCE_SECONDS)
            request = patient._request("GET", "/events", "", headers=headers)
            return self._begun(lambda: self._transport.lines(request))

        return follow_events(opened)

    # Control

    def pause(self, task_id: str) -> Json:
        """Stops handing out partitions of a task. Existing leases remain valid."""
        return self._control(task_id, "pause")

    def resume(self, task_id: str) -> Json:
        return self._control(task_id, "resume")

    def cancel(self, task_id: str) -> Json:
        """Cancels every partition of a task that is not done. Their leases are lost."""
        return self._control(task_id, "cancel")

    def retry(
        self,
        task_id: str,
        *,
        level: int | None = None,
        partitions: Sequence[str] | None = None,
        reason: str | None = None,
        done: bool = False,
    ) -> Json:
        """
        Retries parked partitions with new attempts: all, those of a level, those named, or those parked for a
        reason (the `key` of one of the task's `failures`). With `done`, done ones too; such a call is sent once,
        because a repetition would rerun what finished meanwhile.
        """
        body: dict[str, Any] = {"level": level, "partitions": partitions, "reason": reason, "done": done or None}
        which = {name: value for name, value in body.items() if value is not None}
        client = self.with_options(retry_for_seconds=0) if done else self
        return client._control(task_id, "retry", which)

    def seal(self, task_id: str, *, partitions: int | None = None) -> Json:
        """Declares that no more partitions will follow, and optionally their total number."""
        return self._control(task_id, "seal", {} if partitions is None else {"partitions": partitions})

    def skip_parked(self, task_id: str) -> Json:
        """Opens the level barrier although partitions of a lower level are parked."""
        return self._control(task_id, "skip-parked")

    def level_barrier(self, task_id: str, enabled: bool) -> Json:
        """Enables or disables the level barrier: each level waits until all lower levels are done."""
        return self._control(task_id, "level-barrier", {"enabled": enabled})

    def change_owner(self, task_id: str, name: str) -> Json:
        """Gives the task to another producer, by the name of its token."""
        return self._control(task_id, "owner", {"name": name})

    def settings(self, task_id: str) -> Json:
        """The settings that apply to a task, and which of them are its own."""
        return self._get(f"{task_path(task_id)}/settings", "settings")

    def change_settings(self, task_id: str, settings: Mapping[str, Any]) -> Json:
        """Changes the named settings of a task, which need not exist yet. None goes back to the service's value."""
        return self._change(task_path(task_id), settings)

    def table_settings(self, table: str) -> Json:
        """The limit of a compute table, and whether it is paused."""
        return self._get(f"{table_path(table)}/settings", "settings")

    def change_table_settings(self, table: str, settings: Mapping[str, Any]) -> Json:
        """Limits the leases of a compute table over all tasks, or pauses it. None goes back to the default."""
        return self._change(table_path(table), settings)

    def pause_instance(self, instance_id: str) -> Json:
        """Hands out nothing to an instance until it is resumed. Its leases are not affected."""
        return self._call("POST", f"{instance_path(instance_id)}/pause", "instanceId").body

    def resume_instance(self, instance_id: str) -> Json:
        return self._call("POST", f"{instance_path(instance_id)}/resume", "instanceId").body

    def release_instance(self, instance_id: str) -> Json:
        """Revokes all leases of an instance. Each counts as an attempt; the partitions are ready at once."""
        return self._call("POST", f"{instance_path(instance_id)}/release", "released").body

    def release_partition(self, task_id: str, partition_name: str) -> Json:
        """Revokes the lease of one partition in the same way."""
        path = f"{task_path(task_id)}/partitions/{segment(partition_name, 'partition name')}/release"
        return self._call("POST", path, "released").body

    @property
    def subscriptions(self) -> Subscriptions:
        """Subscriptions to events of tasks."""
        return Subscriptions(self._call, self.with_options(retry_for_seconds=0)._call)

    def _get(self, path: str, field: str, /, **query: Any) -> Json:
        return self._call("GET", path, field, query=query_of(**query)).body

    def _change(self, path: str, settings: Mapping[str, Any]) -> Json:
        body = json_bytes(settings, "the settings")
        return self._call("PATCH", f"{path}/settings", "settings", body=body).body

    def _control(self, task_id: str, verb: str, body: Mapping[str, Any] | None = None) -> Json:
        sent = None if body is None else json_bytes(body, "the request")
        return self._call("POST", f"{task_path(task_id)}/{verb}", "taskId", body=sent).body

    def _call(
        self, method: Literal["GET", "POST", "PATCH", "DELETE"], path: str, field: str, **parts: Any
    ) -> Answer:
        request = self._request(method, path, field, **parts)
        if self._retry_for_seconds == 0:
            return self._transport.json(request)
        return self._persisted(lambda: self._transport.json(request))

    def _request(self, method: str, path: str, field: str, **parts: Any) -> Request:
        if self._traceparent is not None:
            parts["headers"] = {**parts.get("headers", {}), "traceparent": self._traceparent}
        return Request(
            method, path, field, timeout_seconds=self._timeout_seconds, signal=self._signal, **parts
        )

    def _persisted(self, attempt: Callable[[], T]) -> T:
        return persist(
            attempt,
            for_seconds=self._retry_for_seconds,
            signal=self._signal,
            on_failure=self._on_failure,
        )

    def _begun(self, open_lines: Callable[[], Iterator[bytes]]) -> Iterator[bytes]:
        """Repeats until the first line arrived."""

        def first() -> tuple[Iterator[bytes], list[bytes]]:
            lines = open_lines()
            return lines, [line for line in [next(lines, None)] if line is not None]

        lines, begun = self._persisted(first)
        yield from begun
        yield from lines


def client_of(service: str | Sequence[str] | Client) -> Client:
    """The address of a service is its URL, a list of URLs, or an existing client."""
    return service if isinstance(service, Client) else Client(service)


def _sealing(seal: bool | int | None) -> dict[str, str]:
    if seal is None or seal is False:
        return {}
    return {"baton-seal": "true" if seal is True else str(seal)}


def _setting(settings: Mapping[str, Any] | None) -> dict[str, str]:
    words = []
    for name, value in (settings or {}).items():
        word = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name)
        if isinstance(value, Mapping):
            text = f"{value['share']}/{value['of']}"
        else:
            text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        words.append(f"{word}={text}")
    return {"task-settings": ", ".join(words)} if words else {}
