"""The program of the shop, after Celery: it runs the job with other days, and waits for the customers."""

from sortie.client import Client

with Client() as sortie:
    run = sortie.jobs.run("remind", {"parameters": {"DAYS": "30"}})  # was: remind.delay(30)
    sortie.runs.wait(run.run_id, check=True)
    print(sortie.tasks.output(run.task_id).decode())
