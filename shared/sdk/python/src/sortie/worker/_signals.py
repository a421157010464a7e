"""SIGTERM."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

from ..errors import Cancelled


class Signals:
    """Reports SIGTERM through a socket, also while the main thread is in a system call.

    If it raises, it interrupts the main thread by a signal of its own.
    """

    def __init__(self, raises: bool) -> None:
        self.armed = raises
        self._cause: Cancelled | None = None
        self._own = 0  # signals that interrupt sent, not yet read
        self._seen = False  # by the handler, if another wakeup socket was set after ours
        self._wake: Callable[[], None] = lambda: None
        self._handler: Any = None
        self._fd = self._previous_fd = -1
        self._installed = False

    def install(self, fd: int, wake: Callable[[], None]) -> None:
        """Handle SIGTERM. The caller is the main thread."""
        self._wake = wake
        self._handler = signal.signal(signal.SIGTERM, self._handle)
        self._previous_fd = signal.set_wakeup_fd(fd, warn_on_full_buffer=False)
        self._fd = fd
        self._installed = True

    def restore(self) -> bool:
        """Restore the handler that was there before; False off the main thread."""
        if not self._installed:
            return True
        if not in_main_thread():
            return False
        self._installed = False
        if self._handler is not None:
            signal.signal(signal.SIGTERM, self._handler)
        current = signal.set_wakeup_fd(self._previous_fd)
        if current != self._fd:  # of other code, such as asyncio
            signal.set_wakeup_fd(current)
        return True

    def _handle(self, number: int, frame: Any) -> None:
        cause, self._cause = self._cause, None
        if cause is None:
            self._seen = True
            self._wake()
        elif self.armed:
            self.armed = False
            raise cause

    def interrupt(self, cause: Cancelled) -> None:
        """Raise cause in the main thread at its next instruction."""
        main = threading.main_thread().ident
        if self.armed and main is not None:
            self._cause = cause
            self._own += 1
            signal.pthread_kill(main, signal.SIGTERM)

    def terminated(self, content: bytes) -> bool:
        """Report whether there was a SIGTERM of others, and pass other signals on."""
        terms = content.count(bytes([signal.SIGTERM]))
        own = min(terms, self._own)
        self._own -= own
        others = bytes(n for n in content if n not in (0, signal.SIGTERM))
        if others and self._previous_fd >= 0:
            try:
                os.write(self._previous_fd, others)
            except OSError:
                pass
        seen, self._seen = self._seen, False
        return seen or terms > own


def in_main_thread() -> bool:
    """Report whether this is the main thread, the only one that may set handlers."""
    return threading.current_thread() is threading.main_thread()
