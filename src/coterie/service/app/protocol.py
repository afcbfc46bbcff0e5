"""HTTP on a connection: uvicorn's protocol, which also cuts off who is slow to send a head or to read an answer."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from coterie.service.app.settings import ServiceSettings

LARGEST_HEAD = 64 * 1024  # bytes


class TimedProtocol(HttpToolsProtocol):
    """A connection whose other end has so many seconds for the head of a request, and to read what was sent.

    Attributes:
        seconds: How many.
    """

    seconds = 10.0
    _head: asyncio.TimerHandle | None = None
    _reader: asyncio.TimerHandle | None = None
    _n_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Takes a connection, and waits for the first head."""
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Lets go of a connection."""
        self._has_head()
        self._has_reader()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Waits for the head that begins."""
        super().on_message_begin()
        if self._head is None:
            self._wait_for_head()

    def on_headers_complete(self) -> None:
        """Has the head."""
        self._has_head()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Takes bytes, and refuses a head of too many."""
        super().data_received(data)
        if self._head is not None:
            self._n_bytes += len(data)
            if self._n_bytes > LARGEST_HEAD and not self.transport.is_closing():
                self.send_400_response("The head of the request is too large.")

    def pause_writing(self) -> None:
        """Waits for the other end to read."""
        super().pause_writing()
        self._reader = self.loop.call_later(self.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Goes on, as the other end has read."""
        self._has_reader()
        super().resume_writing()

    def _wait_for_head(self) -> None:
        self._n_bytes = 0
        self._head = self.loop.call_later(self.seconds, self.transport.abort)

    def _has_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _has_reader(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            self._reader = None


def protocol_of(settings: ServiceSettings) -> type[asyncio.Protocol]:
    """Returns the protocol with the time that settings give."""
    return type("Protocol", (TimedProtocol,), {"seconds": settings.header_seconds})
