"""Exports one entity through a client that openapi-generator generated."""

import os
import sys

import openapi_client as sortie


def main() -> None:
    configuration = sortie.Configuration(host=os.environ["SORTIE_URL"], access_token=os.environ["SORTIE_TOKEN"])
    with sortie.ApiClient(configuration) as client:
        api = sortie.ExportApi(client)
        accepted = api.export("mods", sortie.ExportRequest(pi=sys.argv[1]))
        status = api.status(accepted.task_id, wait=20)
        while status.status == "processing":
            status = api.status(accepted.task_id, wait=20)
        if status.status != "success" or status.state != "Completed" or not status.output_file_size or not status.completed_at:
            sys.exit(f"got {status}, want a finished export")
        print(status.task_id, status.status, status.output_file_size, "bytes")


main()
