"""The whole process of a worker."""

from __future__ import annotations

import asyncio
import inspect
import logging
import sys
import traceback
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, overload

from ..errors import Cancelled, InvalidEnvelope, NoTask, Terminated, Undelivered
from ._attempt import EXIT_DONE, EXIT_FAILED, EXIT_NO_TASK, EXIT_TERMINATED
from ._task import AsyncTask, OnCancel, Task, atask, logger, task

Work = Callable[[Task], Any]
AsyncWork = Callable[[AsyncTask], Awaitable[Any]]


@overload
def main(work: AsyncWork, /) -> Callable[[], int]: ...
@overload
def main(work: Work, /) -> Callable[[], int]: ...
@overload
def main(
    *,
    log: logging.Logger | None = None,
    worker_id: str | None = None,
    on_cancel: OnCancel = "flag",
    send_output: bool = False,
) -> Callable[[AsyncWork | Work], Callable[[], int]]: ...


def main(work: Any = None, /, **options: Any) -> Any:
    """Make a function of a task the main program of a worker.

    The result takes no arguments, does the task of this process and returns the exit
    code: 0 for success, 1 for a failure or a cancel, 2 without a task, 143 after
    SIGTERM. Call it as ``sys.exit(work())``. The options are those of task.
    """
    if work is None:
        return lambda decorated: _main(decorated, options)
    return _main(work, options)


def _main(work: Any, options: dict[str, Any]) -> Callable[[], int]:
    @wraps(work)
    def run() -> int:
        try:
            if inspect.iscoroutinefunction(work):
                asyncio.run(_run_async(work, options))
            else:
                with task(**options) as current:
                    work(current)
        except (NoTask, InvalidEnvelope) as error:
            print(error, file=sys.stderr)
            return EXIT_NO_TASK
        except Undelivered as error:
            (options.get("log") or logger).error("%s", error)
            return EXIT_FAILED
        except (Terminated, KeyboardInterrupt):
            return EXIT_TERMINATED
        except Cancelled as error:
            print("the task was stopped:", error.reason, file=sys.stderr)
            return EXIT_FAILED
        except SystemExit as error:
            return EXIT_DONE if error.code in (None, 0) else EXIT_FAILED
        except BaseException:
            traceback.print_exc()
            return EXIT_FAILED
        return EXIT_DONE

    del run.__dict__["__wrapped__"]  # the signature is not that of work
    return run


async def _run_async(work: AsyncWork, options: dict[str, Any]) -> None:
    async with atask(**options) as current:
        await work(current)
