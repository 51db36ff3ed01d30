"""Connections to the service, which are used again."""

from __future__ import annotations

import os
import select
import socket
import ssl
import threading
import time

from .base_urls import Base
from .retry import AbortSignal


class Connections:
    """Idle connections. A thread takes one for each request, and gives it back when the answer is read."""

    def __init__(self, ssl_context: ssl.SSLContext | None) -> None:
        self._ssl_context = ssl_context
        self._lock = threading.Lock()
        self._idle: dict[Base, list[socket.socket]] = {}
        self._process = os.getpid()

    def take(self, base: Base, deadline: float, signal: AbortSignal | None) -> socket.socket:
        while True:
            with self._lock:
                self._forget_parent()
                idle = self._idle.get(base)
                connection = idle.pop() if idle else None
            if connection is None:
                return self._connect(base, deadline, signal)
            if not _was_closed(connection):
                return connection
            connection.close()

    def give_back(self, base: Base, connection: socket.socket) -> None:
        with self._lock:
            self._forget_parent()
            self._idle.setdefault(base, []).append(connection)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()

    def __del__(self) -> None:
        self.close()

    def _forget_parent(self) -> None:
        """After a fork, the connections belong to the parent process."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._idle = {}

    def _connect(self, base: Base, deadline: float, signal: AbortSignal | None) -> socket.socket:
        addresses = socket.getaddrinfo(base.host, base.port, type=socket.SOCK_STREAM)
        for at, (family, kind, protocol, _, address) in enumerate(addresses):
            connection = socket.socket(family, kind, protocol)
            unlisten = None if signal is None else signal.listen(lambda: shut_down(connection))
            try:
                connection.settimeout(seconds_left(deadline))
                connection.connect(address)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return self._secured(base, connection)
            except OSError:
                connection.close()
                if at == len(addresses) - 1 or (signal is not None and signal.aborted):
                    raise
            finally:
                if unlisten is not None:
                    unlisten()
        raise OSError(f"{base.host} has no address")

    def _secured(self, base: Base, connection: socket.socket) -> socket.socket:
        if base.scheme == "http":
            return connection
        with self._lock:
            if self._ssl_context is None:
                self._ssl_context = ssl.create_default_context()
        return self._ssl_context.wrap_socket(connection, server_hostname=base.host)


def seconds_left(deadline: float) -> float | None:
    """For `settimeout`, which takes 0 as "do not wait" and None as "wait for ever"."""
    if deadline == float("inf"):
        return None
    return max(deadline - time.monotonic(), 0.001)


def shut_down(connection: socket.socket) -> None:
    """Ends what another thread waits for on this connection."""
    try:
        # Not that of an SSL socket, which would also take away the state that the other thread uses.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
    except OSError:
        pass


def _was_closed(connection: socket.socket) -> bool:
    """An idle connection has something to read only if the service has closed it."""
    try:
        poll = select.poll()
        poll.register(connection, select.POLLIN)
        return bool(poll.poll(0))
    except AttributeError:  # Windows
        return bool(select.select([connection], [], [], 0)[0])
    except (OSError, ValueError):
        return True
