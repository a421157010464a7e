"""Fixes defects of Step Functions in LocalStack 4.14 that affect state machines with task tokens."""

import datetime
import math
import threading
import time

from localstack.runtime import hooks


@hooks.on_infra_start()
def patch():
    give_every_attempt_its_own_token()
    keep_early_callbacks()
    complete_a_token_once()
    stop_at_once()
    report_why_it_was_stopped()
    wait_without_a_limit()
    name_errors_as_aws_does()
    never_wake_early()


def give_every_attempt_its_own_token():
    """4.14 makes one token per entry into a state, so that a Retry replays the earlier outcome, and it accepts a token of
    an earlier attempt."""
    from localstack.services.stepfunctions.asl.component.state.state_execution.state_task.service.resource import ResourceCondition
    from localstack.services.stepfunctions.asl.component.state.state_execution.state_task.service.state_task_service_callback import StateTaskServiceCallback
    from localstack.services.stepfunctions.asl.eval.callback.callback import CallbackConsumerTimeout

    evaluate = StateTaskServiceCallback._eval_execution

    def evaluate_with_token(self, env):
        if self.resource.condition != ResourceCondition.WaitForTaskToken:
            return evaluate(self, env)
        token = env.states.context_object.update_task_token()
        env.callback_pool_manager.add(token)
        env.task_token = token
        try:
            return evaluate(self, env)
        finally:
            env.callback_pool_manager.get(token).report(CallbackConsumerTimeout())

    StateTaskServiceCallback._eval_execution = evaluate_with_token


def keep_early_callbacks():
    """Keep a callback that arrives before the invocation has returned, and accept heartbeats until the outcome."""
    from localstack.services.stepfunctions.asl.eval.callback.callback import CallbackConsumerTimeout, CallbackEndpoint, CallbackNotifyConsumerError

    setup = CallbackEndpoint.setup_heartbeat_endpoint

    def setup_heartbeats(self, heartbeat_seconds):
        endpoint = setup(self, heartbeat_seconds)
        if self._notify_event.is_set():
            endpoint.notify()
        return endpoint

    def heartbeat(self):
        if self.get_outcome() is not None:
            raise CallbackNotifyConsumerError(CallbackConsumerTimeout())
        if self._heartbeat_endpoint:
            self._heartbeat_endpoint.notify()
        return True

    CallbackEndpoint.setup_heartbeat_endpoint = setup_heartbeats
    CallbackEndpoint.notify_heartbeat = heartbeat


def complete_a_token_once():
    """The first outcome of a token wins (4.14 accepts others until the state has read one), and a token ends with its
    state, also after TimeoutSeconds."""
    from localstack.services.stepfunctions.asl.eval.callback.callback import CallbackConsumerTimeout, CallbackEndpoint, CallbackNotifyConsumerError
    from localstack.services.stepfunctions.asl.eval.environment import Environment

    one = threading.Lock()
    notify, close_frame = CallbackEndpoint.notify, Environment.close_frame

    def notify_once(self, outcome):
        with one:
            if self.get_outcome() is not None:
                raise CallbackNotifyConsumerError(CallbackConsumerTimeout())
            notify(self, outcome)

    def close_with_token(self, frame):
        token = getattr(frame, "task_token", None)
        if token:
            self.callback_pool_manager.get(token).report(CallbackConsumerTimeout())
        return close_frame(self, frame)

    CallbackEndpoint.notify = notify_once
    Environment.close_frame = close_with_token


def stop_at_once():
    """StopExecution ends a waiting task at once, and the execution is ABORTED."""
    from localstack.services.stepfunctions.asl.component.state.state_execution.execute_state import ExecutionState
    from localstack.services.stepfunctions.asl.eval.environment import Environment
    from localstack.services.stepfunctions.asl.eval.program_state import ProgramStopped
    from localstack.services.stepfunctions.backend.execution_worker import ExecutionWorker

    set_stop = Environment.set_stop

    def interrupt(self, stop_date, cause, error):
        set_stop(self, stop_date=stop_date, cause=cause, error=error)
        for endpoint in list(self.callback_pool_manager._pool.values()):
            endpoint.interrupt_all()

    evaluate = ExecutionState._evaluate_with_timeout

    def evaluate_until_stopped(self, env):
        try:
            return evaluate(self, env)
        except Exception:
            if isinstance(env._program_state, ProgramStopped):
                return None
            raise

    stop = ExecutionWorker.stop

    def stop_once_running(self, stop_date, error, cause):
        for _ in range(500):
            if self.env is not None and self.env.is_running():
                break
            time.sleep(0.01)
        return stop(self, stop_date=stop_date, error=error, cause=cause)

    Environment.set_stop = interrupt
    ExecutionState._evaluate_with_timeout = evaluate_until_stopped
    ExecutionWorker.stop = stop_once_running


def report_why_it_was_stopped():
    """An ABORTED execution is described with its error and cause."""
    from localstack.services.stepfunctions.asl.eval.program_state import ProgramStopped
    from localstack.services.stepfunctions.backend.execution import BaseExecutionWorkerCommunication

    reflect = BaseExecutionWorkerCommunication._reflect_execution_status

    def reflect_why(self):
        state = self.execution.exec_worker.env.program_state()
        if isinstance(state, ProgramStopped):
            self.execution.error, self.execution.cause = state.error, state.cause
        reflect(self)

    BaseExecutionWorkerCommunication._reflect_execution_status = reflect_why


def wait_without_a_limit():
    """A missing TimeoutSeconds means 99999999 s, with a heartbeat, too."""
    from localstack.services.stepfunctions.asl.component.common.timeouts.timeout import TimeoutSeconds
    from localstack.services.stepfunctions.asl.component.state.state_execution.execute_state import ExecutionState

    from_props = ExecutionState.from_state_props

    def with_default(self, state_props):
        from_props(self, state_props)
        if getattr(self.timeout, "is_default", None):
            self.timeout = TimeoutSeconds(TimeoutSeconds.DEFAULT_TIMEOUT_SECONDS)

    ExecutionState.from_state_props = with_default


def name_errors_as_aws_does():
    """A missed heartbeat is States.HeartbeatTimeout too, and States.ALL does not catch States.Runtime."""
    from localstack.services.stepfunctions.asl.component.common.error_name.error_equals_decl import ErrorEqualsDecl
    from localstack.services.stepfunctions.asl.component.common.error_name.states_error_name import StatesErrorName
    from localstack.services.stepfunctions.asl.component.common.error_name.states_error_name_type import StatesErrorNameType
    from localstack.services.stepfunctions.asl.component.state.state_execution.state_task.state_task import StateTask
    from localstack.services.stepfunctions.asl.eval.callback.callback import HeartbeatTimeoutError

    heartbeat, runtime = StatesErrorNameType.StatesHeartbeatTimeout.to_name(), StatesErrorNameType.StatesRuntime.to_name()
    from_error, evaluate = StateTask._from_error, ErrorEqualsDecl._eval_body

    def mark_heartbeats(self, env, ex):
        event = from_error(self, env, ex)
        if isinstance(ex, HeartbeatTimeoutError):
            event.error_name.heartbeat = True
        return event

    def matches(self, env):
        error = env.stack[-1]
        names = {n.error_name for n in self.error_names}
        if getattr(error, "heartbeat", False) and heartbeat in names:
            env.stack[-1] = True
        elif isinstance(error, StatesErrorName) and error.error_name == runtime and runtime not in names:
            env.stack[-1] = False
        else:
            evaluate(self, env)

    StateTask._from_error = mark_heartbeats
    ErrorEqualsDecl._eval_body = matches


def never_wake_early():
    """Wait until a Timestamp independently of the host's time zone."""
    from localstack.services.stepfunctions.asl.component.common.error_name.failure_event import FailureEventException
    from localstack.services.stepfunctions.asl.component.state.state_wait.wait_function.timestamp import Timestamp

    def seconds(self, env):
        self.string.eval(env=env)
        text = env.stack.pop()
        if self._from_timestamp_string(timestamp=text) is None:
            raise FailureEventException(self._create_failure_event(env, text))
        at = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
        return max(0, math.ceil((at - datetime.datetime.now(datetime.UTC)).total_seconds()))

    Timestamp._get_wait_seconds = seconds
