"""A decoder of Server-Sent Events that takes bytes in any pieces."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from .errors import SortieError

__all__ = ["Decoder", "Message"]

_LINE_END = re.compile(r"\r\n|\r|\n")
_MOST_CHARACTERS = 16 << 20


@dataclass(frozen=True)
class Message:
    """An event: the last event id at that time, its type and its data."""

    id: str
    event: str
    data: str


class Decoder:
    """Decodes one stream, as the WHATWG standard defines it.

    It raises SortieError for an event of more than 16 Mi characters.
    """

    def __init__(self) -> None:
        #: The id of the last complete event, also of one without data.
        self.last_event_id = ""
        #: The last reconnection time of the stream in milliseconds.
        self.retry: int | None = None
        self._text = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._pieces: list[str] = []  # of the incomplete line
        self._after_cr = False
        self._line_size = self._data_size = 0  # of the incomplete event
        self._id = ""
        self._event = ""
        self._data: list[str] = []

    def feed(self, content: bytes) -> list[Message]:
        """Return the events that the bytes complete."""
        text = self._text.decode(content)
        if self._after_cr and text:
            self._after_cr = False
            if text[0] == "\n":
                text = text[1:]
        if not text:
            return []
        self._after_cr = text[-1] == "\r"
        first, *rest = _LINE_END.split(text)
        self._pieces.append(first)
        self._line_size += len(first)
        messages: list[Message] = []
        for part in rest:
            self._line("".join(self._pieces), messages)
            self._pieces = [part]
            self._line_size = len(part)
        if self._line_size + self._data_size > _MOST_CHARACTERS:
            raise SortieError("an event of the stream is too large")
        return messages

    def _line(self, line: str, messages: list[Message]) -> None:
        if not line:
            self._dispatch(messages)
            return
        name, _, value = line.partition(":")
        value = value[1:] if value[:1] == " " else value
        if name == "data":
            self._data.append(value)
            self._data_size += len(value) + 1
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit() and len(value) < 16:
            self.retry = int(value)

    def _dispatch(self, messages: list[Message]) -> None:
        self.last_event_id = self._id
        if self._data:
            messages.append(Message(self._id, self._event or "message", "\n".join(self._data)))
        self._event = ""
        self._data = []
        self._data_size = 0
