"""Reminders with Sortie: a process for each run, and no other one. after.yaml is the job."""

import json
import os
import urllib.request

from sortie import worker


@worker.main
def remind(task: worker.Task) -> None:
    """Store the customers with an invoice that is overdue by DAYS."""
    days = int(os.environ["DAYS"])
    with urllib.request.urlopen("http://127.0.0.1:8000/invoices.json", timeout=30) as answer:
        invoices = json.load(answer)
    customers = sorted({invoice["customer"] for invoice in invoices if invoice["overdueDays"] >= days})
    task.output(json.dumps(customers).encode(), content_type="application/json", file_name="customers.json")


if __name__ == "__main__":
    raise SystemExit(remind())
