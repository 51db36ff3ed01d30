"""Sends one request and returns its answer, or raises a typed error. Does not repeat."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import time
import unicodedata
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, TypeVar

from .base_urls import Base, BaseUrls
from .connections import Connections, seconds_left, shut_down
from .errors import BatonError, UnexpectedAnswerError, UnreachableError, UnsendableError, problem_error
from .protocol import MAX_INSTANCE_ID_LENGTH
from .retry import AbortSignal, guarded

T = TypeVar("T")

SHOWN_BODY_CHARACTERS = 200


#: Made once: `json.dumps` with options makes one for each value, and a call-back has a value per descriptor.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def json_bytes(value: object, what: str) -> bytes:
    try:
        return _ENCODER.encode(value).encode()
    except UnicodeEncodeError:
        raise UnsendableError(f"{what} cannot be written as JSON: it contains a lone surrogate") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise UnsendableError(f"{what} cannot be written as JSON: {error}") from None


class Request(NamedTuple):
    method: str
    #: Relative to the base URL, beginning with a slash.
    path: str
    #: A field of every answer. Without it, the answer is from another program.
    field: str
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = {}
    #: JSON.
    body: bytes | None = None
    #: How long the service may wait before it answers.
    wait_seconds: float = 0
    #: In addition to that wait.
    timeout_seconds: float | None = None
    signal: AbortSignal | None = None


class Answer(NamedTuple):
    body: dict[str, Any]
    retry_after_seconds: float | None


class RequestReport(NamedTuple):
    """A request that has ended."""

    method: str
    path: str
    #: None if no answer arrived.
    status: int | None
    seconds: float
    #: The error, if the request failed.
    error: BaseException | None


class Transport:
    def __init__(
        self,
        url: str | Sequence[str],
        *,
        token: str | Callable[[], str] | None,
        instance_id: str | None,
        headers: Mapping[str, str] | Callable[[], Mapping[str, str]] | None,
        timeout_seconds: float,
        ssl_context: ssl.SSLContext | None,
        on_request: Callable[[RequestReport], object] | None,
    ) -> None:
        self._bases = BaseUrls(url)
        self._connections = Connections(ssl_context)
        self._token = token
        self._instance_id = None if instance_id is None else _instance_header(instance_id)
        self._headers = headers
        self._timeout_seconds = timeout_seconds
        self._on_request = on_request

    def json(self, request: Request) -> Answer:
        def exchange(base: Base) -> Answer:
            with self._answered(base, request) as response:
                body = parsed(response.read(), response.status, request.field)
                return Answer(body, _retry_after_of(response))

        return self._reported(request, exchange)

    def lines(self, request: Request) -> Iterator[bytes]:
        """The lines of a body as they arrive. The timeout is that of each piece of it."""
        with ExitStack() as opened:
            response = self._reported(
                request, lambda base: opened.enter_context(self._answered(base, request))
            )
            yield from response

    def close(self) -> None:
        self._connections.close()

    def _reported(self, request: Request, exchange: Callable[[Base], T]) -> T:
        if self._on_request is None:
            return self._bases.ask(exchange)
        begun = time.monotonic()
        status, failed = None, None
        try:
            result = self._bases.ask(exchange)
            status = 200
            return result
        except BaseException as error:
            status, failed = getattr(error, "status", None), error
            raise
        finally:
            seconds = time.monotonic() - begun
            said = RequestReport(request.method, request.path, status, seconds, failed)
            guarded(self._on_request, said)

    @contextmanager
    def _answered(self, base: Base, request: Request) -> Iterator[http.client.HTTPResponse]:
        """Sends the request. An answer that is not a success raises the error that it describes."""
        seconds = (request.timeout_seconds or self._timeout_seconds) + request.wait_seconds
        deadline = time.monotonic() + seconds
        sent = self._head(base, request) + (request.body or b"")
        signal = request.signal
        connection = response = unlisten = None
        try:
            if signal is not None:
                signal.raise_if_aborted()
            connection = taken = self._connections.take(base, deadline, signal)
            if signal is not None:
                unlisten = signal.listen(lambda: shut_down(taken))
            connection.settimeout(seconds_left(deadline))
            connection.sendall(sent)
            response = http.client.HTTPResponse(connection, method=request.method)
            response.begin()
            connection.settimeout(seconds_left(deadline))
            if not 200 <= response.status < 300:
                raise _refusal(response)
            leader = response.getheader("baton-leader")
            if leader is not None:
                self._bases.leader_named(base, leader)
            yield response
        except (OSError, http.client.HTTPException) as error:
            if signal is not None:
                signal.raise_if_aborted()
            raise _failure(base, error, seconds, connected=connection is not None) from error
        finally:
            if unlisten is not None:
                unlisten()
            if connection is not None:
                if response is not None and response.isclosed() and not response.will_close:
                    self._connections.give_back(base, connection)
                else:
                    # The connection stays open until its reader is closed, too.
                    if response is not None:
                        response.close()
                    connection.close()

    def _head(self, base: Base, request: Request) -> bytes:
        query = "?" + urllib.parse.urlencode(request.query) if request.query else ""
        fields = {"host": base.authority, "accept": "application/json"}
        given = self._headers() if callable(self._headers) else self._headers
        for name, value in (given or {}).items():
            fields[name.lower()] = value
        token = self._token() if callable(self._token) else self._token
        if token is not None:
            fields["authorization"] = f"Bearer {token}"
        if self._instance_id is not None:
            fields["x-instance-id"] = self._instance_id
        if request.body is not None:
            fields["content-type"] = "application/json"
            fields["content-length"] = str(len(request.body))
        elif request.method != "GET":
            fields["content-length"] = "0"
        fields.update(request.headers)
        lines = [f"{request.method} {base.path}{request.path}{query} HTTP/1.1"]
        for name, value in fields.items():
            # The message omits the value, which may be a token.
            if not _NAME.fullmatch(name) or not _VALUE.fullmatch(str(value)):
                raise UnsendableError(f"the header {name} has a name or a value that HTTP cannot carry")
            lines.append(f"{name}: {value}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


#: Field names and values as in RFC 9110, one byte per character.
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def _instance_header(instance_id: str) -> str:
    if not isinstance(instance_id, str):
        raise TypeError("instance_id must be a string")
    if instance_id == "" or _CONTROL.search(instance_id):
        raise ValueError("instance_id must not be empty or contain control characters or lone surrogates")
    if len(instance_id) > MAX_INSTANCE_ID_LENGTH:
        raise ValueError(f"instance_id must have at most {MAX_INSTANCE_ID_LENGTH} characters")
    # Headers carry bytes, one per character. The service reads these bytes as UTF-8.
    return instance_id.encode().decode("latin-1")


#: OpenSSL's reasons for an answer that is not TLS.
_NOT_TLS = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE"}


def _failure(base: Base, error: Exception, seconds: float, *, connected: bool) -> BatonError:
    if isinstance(error, TimeoutError):
        return UnreachableError(f"{base} did not answer within {seconds:g} s", connected=connected)
    if isinstance(error, ssl.SSLError) and error.reason in _NOT_TLS:
        plain = base._replace(scheme="http")
        return UnsendableError(
            f"{base} does not use TLS: the service expects plain HTTP on this port; use {plain}, "
            "or the port of the TLS proxy"
        )
    return UnreachableError(f"{base} cannot be reached: {error or type(error).__name__}", connected=connected)


def parsed(text: bytes, status: int, field: str) -> dict[str, Any]:
    """The object in an answer. Every object of this kind has the field."""
    try:
        value = json.loads(text)
    except ValueError:
        # A proxy that sends no length can cut an answer without an error of the connection.
        if text.startswith(b"{"):
            raise UnreachableError(f"the answer is incomplete: {_beginning_of(text)}") from None
        raise UnexpectedAnswerError(f"the answer is not JSON but {_beginning_of(text)}", status) from None
    if not isinstance(value, dict) or field not in value:
        raise UnexpectedAnswerError(f"the answer has no {field}: {_beginning_of(text)}", status)
    return value


def _refusal(response: http.client.HTTPResponse) -> BatonError:
    text = response.read()
    status = response.status
    retry_after = _retry_after_of(response)
    location = response.getheader("location")
    if 300 <= status < 400 and location is not None:
        place = _one_line(location)
        return UnexpectedAnswerError(f"status {status}, a redirect to {place}: use that URL", status)
    try:
        document = json.loads(text)
        if isinstance(document["code"], str) and isinstance(document["detail"], str):
            return problem_error(document, retry_after)
    except (ValueError, TypeError, KeyError):
        pass  # Not from Baton; reported below.
    return UnexpectedAnswerError(f"status {status} with {_beginning_of(text)}", status, retry_after)


def _retry_after_of(response: http.client.HTTPResponse) -> float | None:
    text = response.getheader("retry-after")
    return float(text) if text is not None and re.fullmatch(r"[0-9]{1,6}", text) else None


def _beginning_of(text: bytes) -> str:
    line = _one_line(text.decode(errors="replace"))
    if line == "":
        return "an empty body"
    return line if len(line) <= SHOWN_BODY_CHARACTERS else f"{line[:SHOWN_BODY_CHARACTERS]}…"


def _one_line(text: str) -> str:
    """Without control characters, because it becomes part of messages in logs and terminals."""
    shown = (" " if unicodedata.category(one)[0] == "C" else one for one in text)
    return " ".join("".join(shown).split())
