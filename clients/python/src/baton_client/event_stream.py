"""The events of the service, as they happen."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .errors import UnreachableError
from .protocol import Json
from .retry import back_off_seconds

#: Three heartbeats of the service. After this much silence, the connection is broken.
LONGEST_SILENCE_SECONDS = 45.0


class StreamEvent(NamedTuple):
    #: `task`, `parked`, `instance`, or `reset`: some events may be missing.
    name: str
    data: Json


def follow_events(open_lines: Callable[[str | None], Iterator[bytes]]) -> Iterator[StreamEvent]:
    """Never ends. When the connection breaks, goes on after the last event."""
    last_id = None
    while True:
        try:
            for event_id, event in _read(open_lines(last_id)):
                last_id = event_id or last_id
                if event is not None:
                    yield event
        except UnreachableError:
            pass  # Opened again below.
        time.sleep(back_off_seconds(1))


def _read(lines: Iterator[bytes]) -> Iterator[tuple[str | None, StreamEvent | None]]:
    """What the service uses of server-sent events: id, event, one line of data, and comments."""
    fields: dict[str, str] = {}
    for line in lines:
        text = line.decode().rstrip("\n")
        if text != "":
            name, _, value = text.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        event = None
        if "event" in fields and "data" in fields:
            event = StreamEvent(fields["event"], json.loads(fields["data"]))
        yield fields.get("id"), event
        fields = {}
