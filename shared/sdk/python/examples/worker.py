"""A worker: counts the words of its input and writes them, most frequent first.

It reports its progress and stops between two lines when the task is cancelled.
PAUSE_MS sets how long each line takes.
"""

import collections
import json
import os

from sortie import worker

PAUSE = float(os.environ.get("PAUSE_MS", "100")) / 1000
SAMPLE = "\n".join(f"line {n} of the sample has seven words" for n in range(1, 31))


@worker.main(send_output=True)
def work(task: worker.Task) -> None:
    """Count the words."""
    task.phase("count")
    lines = (task.input().decode() or SAMPLE).splitlines()
    counts: collections.Counter[str] = collections.Counter()
    for done, line in enumerate(lines, 1):
        task.wait_cancelled(PAUSE)
        task.partial({"lines": done - 1})
        task.check()
        counts.update(line.split())
        task.progress(100 * done / len(lines), f"line {done} of {len(lines)}")
        print(f"line {done}: {len(line.split())} words", file=task.stdout)
    task.phase("store")
    task.metrics["words"] = counts.total()
    text = json.dumps(dict(counts.most_common()), indent=1) + "\n"
    task.output(text.encode(), content_type="application/json", file_name="words.json")


if __name__ == "__main__":
    raise SystemExit(work())
