"""Removes expensive work of LocalStack whose results are not used: CloudWatch's metrics of each invocation, and its copy
of each log line. The functions' lines are appended to $SORTIE_FUNCTIONS_LOG instead.

Mainly it caches what LocalStack repeats: it builds the parser's tables for each JSONPath of each state (two thirds of its
time during executions), parses the whole state machine for each execution, assumes its role for each call of a function,
and prints the whole state for each error. Each start reads botocore's data of every AWS service, and its list of regions
once per service."""

import copy
import functools
import os
import sys
import threading

from localstack.runtime import hooks


def nothing(*args, **kwargs):
    pass


@hooks.on_infra_start(priority=100)  # before anything asks for the catalog
def leave_out():
    keep_the_catalog()
    list_regions_with_one_session()
    parse_paths_once()
    read_machines_once()
    assume_roles_once()
    from localstack.services.lambda_.invocation import version_manager
    from localstack.services.lambda_.invocation.logs import LogHandler

    one_by_one = threading.Lock()
    file = os.environ.get("SORTIE_FUNCTIONS_LOG", os.devnull)

    def append(self, log_item):
        with one_by_one, open(file, "a") as log:
            log.write(f"{log_item.log_group} {log_item.log_stream}\n{log_item.logs}")

    LogHandler.add_logs = append
    version_manager.record_cw_metric_invocation = nothing
    version_manager.record_cw_metric_error = nothing


def keep_the_catalog():
    """Store the catalog of services with the packages that it is made from, atomically."""
    from localstack import config
    from localstack.aws import spec

    name, save = spec._get_catalog_filename(), spec.save_service_index_cache
    if os.path.exists(os.path.join(config.dirs.static_libs, name)):  # as in the image
        return

    def save_whole(index, file):
        part = f"{file}.{os.getpid()}"
        catalog = save(index, part)
        os.replace(part, file)
        return catalog

    spec._get_catalog_filename = lambda: os.path.join(sys.prefix, name)
    spec.save_service_index_cache = save_whole


def list_regions_with_one_session():
    import boto3
    from localstack.services import stores

    session = boto3.Session()
    elsewhere = [
        region for partition in ("aws-us-gov", "aws-cn") for region in session.get_available_regions("cloudwatch", partition_name=partition)
    ]
    stores.get_valid_regions_for_service = lambda service: session.get_available_regions(service) + elsewhere


def parse_paths_once():
    from localstack.services.stepfunctions.asl.component.common.path import result_path
    from localstack.services.stepfunctions.asl.component.eval_component import EvalComponent
    from localstack.services.stepfunctions.asl.utils import json_path

    for module in (json_path, result_path):
        module.parse = functools.lru_cache(maxsize=1000)(module.parse)
    EvalComponent._log_failure_event_exception = nothing


def read_machines_once():
    from localstack.services.stepfunctions.backend.execution_worker import ExecutionWorker

    machines, one_by_one, read = {}, threading.Lock(), ExecutionWorker._get_evaluation_entrypoint

    def once(self):
        definition = self._evaluation_details.state_machine_details.definition
        with one_by_one:
            if definition not in machines:
                machines[definition] = read(self)
        return copy.deepcopy(machines[definition])  # what an execution does to its own is not another's

    ExecutionWorker._get_evaluation_entrypoint = once


def assume_roles_once():
    from botocore.config import Config
    from localstack.services.stepfunctions.asl.component.state.state_execution.state_task import lambda_eval_utils
    from localstack.services.stepfunctions.asl.utils import boto_client

    boto_client._BOTO_CLIENT_CONFIG = boto_client._BOTO_CLIENT_CONFIG.merge(Config(max_pool_connections=200))
    clients, one_by_one, make = {}, threading.Lock(), lambda_eval_utils.boto_client_for

    def once(service, region, state_credentials):
        wanted = (service, region, state_credentials.role_arn)
        with one_by_one:
            if wanted not in clients:
                clients[wanted] = make(service, region, state_credentials)
            return clients[wanted]

    lambda_eval_utils.boto_client_for = once
