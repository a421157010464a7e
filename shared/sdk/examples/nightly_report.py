"""A nightly report: sums the orders of a CSV file by country.

ORDERS is the address of the file. nightly-report.yaml is the job.
"""

import csv
import os
import urllib.request
from collections import defaultdict
from decimal import Decimal, InvalidOperation

from sortie import worker


@worker.main
def report(task: worker.Task) -> None:
    """Store the sums as CSV."""
    task.phase("reading")
    with urllib.request.urlopen(os.environ["ORDERS"], timeout=30) as answer:
        orders = list(csv.DictReader(answer.read().decode().splitlines()))
    task.phase("summing")
    sums: defaultdict[str, Decimal] = defaultdict(Decimal)
    for number, order in enumerate(orders, 1):
        task.check()  # raises after a cancel request
        try:
            sums[order["country"]] += Decimal(order["amount"])
        except (KeyError, InvalidOperation):
            task.fail("DATA_QUALITY", f"order {number}: want a country and an amount", False)
        task.progress(100 * number / len(orders), f"{number} of {len(orders)} orders")
    task.metrics["orders"] = len(orders)
    lines = [f"{country},{total}\n" for country, total in sorted(sums.items())]
    text = "country,total\n" + "".join(lines)
    task.output(text.encode(), content_type="text/csv", file_name="report.csv")


if __name__ == "__main__":
    raise SystemExit(report())
