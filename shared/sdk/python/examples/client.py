"""A client: runs examples/worker.py, follows its output, and prints the file that it wrote.

It needs a local system that runs programs of this host: "sortie dev" in another
terminal, and SORTIE_TOKEN, which is in the file .sortie/token of its folder. SORTIE_URL
is the address of another system.

    python examples/client.py some-text.txt
"""

import os
import sys
from pathlib import Path

from sortie.client import Client, log_bytes

WORKER = Path(__file__).resolve().parent / "worker.py"


def main(path: str) -> None:
    """Count the words of a file."""
    variables = {name: os.environ[name] for name in ("PAUSE_MS", "PYTHONPATH") if name in os.environ}
    with Client() as client:
        run = client.runs.create(
            {
                "image": f"exec:{sys.executable}",
                "command": [str(WORKER)],
                "completion": "callback",
                "input": Path(path).read_bytes(),
                "env": variables,
            }
        )
        print("run", run.run_id, file=sys.stderr)
        for line in client.tasks.follow_logs(run.task_id):
            sys.stderr.buffer.write(log_bytes(line))
        client.runs.wait(run.run_id, check=True)
        sys.stdout.buffer.write(client.tasks.output(run.task_id))


if __name__ == "__main__":
    main(sys.argv[1])
