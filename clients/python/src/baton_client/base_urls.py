"""The base URLs of a service, and which of them is asked."""

from __future__ import annotations

import json
import re
import threading
import time
import urllib.parse
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from .errors import BatonError, ProblemError, UnexpectedAnswerError, UnreachableError, UnsendableError

T = TypeVar("T")

#: Not shown in an error.
_CREDENTIALS = re.compile(r"//[^/]*@")

_PORTS = {"http": 80, "https": 443}


class Base(NamedTuple):
    scheme: str
    host: str
    port: int
    #: The authority, as the `Host` header has it.
    authority: str
    #: Without a slash at its end.
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def base_of(url: str) -> Base:
    shown = json.dumps(_CREDENTIALS.sub("//…@", str(url)), ensure_ascii=False)
    refusal = ValueError(f"url must be a URL that begins with http:// or https://, got {shown}")
    try:
        read = urllib.parse.urlsplit(url)
        port = read.port
    except (ValueError, AttributeError, TypeError):
        raise refusal from None
    if read.scheme not in _PORTS or not read.hostname:
        raise refusal
    if read.username is not None or read.password is not None:
        raise ValueError("url must not have a user name or a password: they are not sent; use a token")
    host = read.hostname
    name = f"[{host}]" if ":" in host else host
    default = _PORTS[read.scheme]
    authority = name if port is None or port == default else f"{name}:{port}"
    path = urllib.parse.quote(read.path.rstrip("/"), safe="/%:@!$&'()*+,;=~-._")
    return Base(read.scheme, host, port or default, authority, path)


#: How long a client stays where it was after the leader refused it or could not be reached.
STAY_SECONDS = 60.0


class BaseUrls:
    """
    Requests go to the URL that answered last; if it is unavailable, to the next one. If an answer names the
    leader by one of these URLs, they go there.
    """

    def __init__(self, url: str | Sequence[str]) -> None:
        urls = [url] if isinstance(url, str) else list(url)
        self._bases = [base_of(one) for one in urls]
        if not self._bases:
            raise ValueError("url must be a URL or a list of URLs, got an empty list")
        self._lock = threading.Lock()
        self._at = 0
        #: Where requests went before they moved to the leader.
        self._moved_from: int | None = None
        self._stay_until = 0.0

    def ask(self, send: Callable[[Base], T]) -> T:
        """Sends a request to one URL after the other, as long as none of them can have received it."""
        tries_left = len(self._bases)
        while True:
            at = self._at
            try:
                return send(self._bases[at])
            except BatonError as error:
                if not self._go_back(at, error):
                    if not self._go_on(at, error):
                        raise
                    tries_left -= 1
                # If the request may have arrived, the caller decides whether to repeat it.
                if not _had_no_effect(error):
                    raise
                if tries_left == 0:
                    raise self._none_answers(error) from error

    def leader_named(self, base: Base, url: str) -> None:
        """Moves to the leader that an answer named, if the caller gave its URL, and never from https to http."""
        if len(self._bases) == 1:
            return
        try:
            leader = base_of(url)
        except ValueError:
            return
        if leader not in self._bases or (base.scheme == "https" and leader.scheme == "http"):
            return
        with self._lock:
            here = self._bases[self._at] == base
            if here and leader != base and time.monotonic() >= self._stay_until:
                self._moved_from = self._at
                self._at = self._bases.index(leader)

    def _go_back(self, at: int, error: BatonError) -> bool:
        """
        Returns from a leader that this client cannot use, and stays for a while: its network, its certificate or
        its token may be for other nodes.
        """
        if not isinstance(error, (UnreachableError, UnsendableError)) and not _is_refused(error):
            return False
        with self._lock:
            if self._moved_from is None or at != self._at:
                return False
            self._at, self._moved_from = self._moved_from, None
            self._stay_until = time.monotonic() + STAY_SECONDS
            return True

    def _go_on(self, at: int, error: BatonError) -> bool:
        """Continues with the next URL, if another node might answer, or give another answer."""
        if not _is_away(error) or len(self._bases) == 1:
            return False
        with self._lock:
            # A concurrent request may have switched already.
            if at == self._at:
                self._at = (at + 1) % len(self._bases)
                self._moved_from = None
            return True

    def _none_answers(self, error: BatonError) -> BatonError:
        if not isinstance(error, UnreachableError) or len(self._bases) == 1:
            return error
        why = re.search(r" cannot be reached.*", str(error))
        bases = ", ".join(map(str, self._bases))
        last = f"none of {bases} answers; the last attempt{why.group() if why else ''}"
        return UnreachableError(last, connected=error.connected)


def _is_refused(error: BatonError) -> bool:
    return getattr(error, "status", None) in (401, 403)


def _is_away(error: BatonError) -> bool:
    if isinstance(error, UnreachableError):
        return True
    if isinstance(error, ProblemError):
        return error.status == 503
    return isinstance(error, UnexpectedAnswerError) and 502 <= error.status <= 504


def _had_no_effect(error: BatonError) -> bool:
    if isinstance(error, UnreachableError):
        return not error.connected
    if isinstance(error, UnsendableError) or _is_refused(error):
        return True
    return getattr(error, "code", None) == "shutting_down"
