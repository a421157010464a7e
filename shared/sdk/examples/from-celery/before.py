"""Reminders with Celery: a worker, a beat process and a Redis server run all the time."""

import json
import urllib.request

from celery import Celery
from celery.schedules import crontab

app = Celery("shop", broker="redis://localhost")
app.conf.beat_schedule = {
    "remind": {"task": "before.remind", "schedule": crontab(hour=8, minute=0), "args": (14,)},
}


@app.task(autoretry_for=(OSError,), retry_backoff=30, max_retries=4, time_limit=600, acks_late=True)
def remind(days: int) -> list[str]:
    """Return the customers with an invoice that is overdue by days."""
    with urllib.request.urlopen("http://127.0.0.1:8000/invoices.json", timeout=30) as answer:
        invoices = json.load(answer)
    return sorted({invoice["customer"] for invoice in invoices if invoice["overdueDays"] >= days})


if __name__ == "__main__":
    remind.delay(30)  # from the program of the shop
