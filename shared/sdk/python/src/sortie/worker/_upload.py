"""The content of an output, as a body that can be sent again."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Union

#: What Task.output stores: a path, the content, or a file that was opened for bytes.
Content = Union["str | os.PathLike[str]", bytes, IO[bytes]]


class Hashed:
    """A body of an upload: computes the digest of what is read, and ends with the work."""

    def __init__(self, file: IO[bytes], size: int, stopped: threading.Event) -> None:
        self._file = file
        self._left = size
        self._stopped = stopped
        self.sum = hashlib.sha256()
        self.size = 0

    def read(self, most: int = -1) -> bytes:
        """Return the next bytes. Raises OSError if the work must stop."""
        if self._stopped.is_set():
            raise OSError("the work must stop")
        want = self._left if most < 0 else min(most, self._left)
        content = self._file.read(want)
        if want and not content:
            raise OSError("the file became shorter")
        self._left -= len(content)
        self.size += len(content)
        self.sum.update(content)
        return content


def name_of(content: Content) -> str:
    """Return the name of a path; empty for another content."""
    return os.path.basename(os.fspath(content)) if isinstance(content, (str, os.PathLike)) else ""


@contextmanager
def opened(content: Content) -> Iterator[tuple[IO[bytes], int]]:
    """Return a file that can be read again, and the number of bytes from its position."""
    if isinstance(content, (str, os.PathLike)):
        with open(content, "rb") as file:
            yield file, os.fstat(file.fileno()).st_size
    elif isinstance(content, (bytes, bytearray, memoryview)):
        yield io.BytesIO(content), len(content)
    elif content.seekable():
        start = content.tell()
        end = content.seek(0, os.SEEK_END)
        content.seek(start)
        yield content, end - start
    else:
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(content, copy)
            size = copy.tell()
            copy.seek(0)
            yield copy, size
