"""Forks: a child process has no threads and must not report."""

from __future__ import annotations

import os
import signal
import threading
import weakref
from typing import Protocol


class Forked(Protocol):
    """What must not continue in a child process."""

    def forked(self) -> None:
        """Forget the attempt, in the child."""


#: The attempts of this process.
running: weakref.WeakSet[Forked] = weakref.WeakSet()
_fork = threading.local()


def _before_fork() -> None:
    """Hold SIGTERM back until the child has the handler that was there before."""
    _fork.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM}) if running else None


def _after_fork_in_parent() -> None:
    mask = getattr(_fork, "mask", None)
    if mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _after_fork_in_child() -> None:
    for attempt in list(running):
        attempt.forked()
    running.clear()
    _after_fork_in_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
    )
