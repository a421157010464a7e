"""Leaves out what costs LocalStack much of its one processor, and what nobody looks at: CloudWatch's metrics of each
invocation, and its copy of each log line. The functions' lines are appended to $SORTIE_FUNCTIONS_LOG instead.

Above all, a JSONPath is parsed once: LocalStack makes the parser's tables anew for each path of each state, which was
two thirds of its time while executions ran. It also reads the whole state machine anew for each execution, assumes its
role anew for each call of a function, and writes out the whole of a state for each error that it meets."""

import copy
import functools
import os
import threading

from localstack.runtime import hooks


def nothing(*args, **kwargs):
    pass


@hooks.on_infra_start()
def leave_out():
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
