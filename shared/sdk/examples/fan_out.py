"""Runs the job page-sizes for the pages of the command line, and prints the result of each."""

import json
import sys

from sortie.client import Client

with Client() as sortie:
    run = sortie.jobs.run("page-sizes", {"items": sys.argv[1:]})
    ended = sortie.runs.wait(run.run_id, check=True)
    print(run.run_id, ended.children.succeeded if ended.children else 0, "pages")
    # The output of the run has a line for each child, in the order of the items.
    for child in map(json.loads, sortie.tasks.output(run.task_id).splitlines()):
        print(child["item"], child.get("result", child["state"]))
