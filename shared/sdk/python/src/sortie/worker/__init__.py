"""Write a worker: a program that Sortie starts for one attempt at one task.

    from sortie import worker

    @worker.main
    def work(task: worker.Task) -> None:
        for page in range(100):
            task.check()
            task.progress(page, f"page {page}")
        task.output(b"done", content_type="text/plain")

    if __name__ == "__main__":
        raise SystemExit(work())

It needs the standard library alone. Heartbeats leave from a thread of their own. Code
that never yields to other threads must run under sortie-exec instead.
"""

from ..errors import (
    Aborted,
    Cancelled,
    DeadlineReached,
    Failure,
    InvalidEnvelope,
    NoTask,
    Terminated,
    Undelivered,
)
from ._main import main
from ._task import AsyncTask, Task, atask, task

__all__ = [
    "Aborted",
    "AsyncTask",
    "Cancelled",
    "DeadlineReached",
    "Failure",
    "InvalidEnvelope",
    "NoTask",
    "Task",
    "Terminated",
    "Undelivered",
    "atask",
    "main",
    "task",
]
