"""Invokes what the schedules of EventBridge Scheduler name: LocalStack 4.14 stores schedules and invokes nothing.

The deployment uses at(...) in UTC with a function as target, so that is all that fires; another schedule is logged. A
schedule fires once after each change. Invocations that the function does not accept are repeated each second within the
schedule's RetryPolicy; then the input goes to the schedule's dead-letter queue."""

import datetime
import logging
import sys
import threading
import time

from localstack.aws.connect import connect_to
from localstack.runtime import hooks

LOG = logging.getLogger(__name__)
PAUSE = 0.2  # seconds between two looks at all schedules
AT = "at(%Y-%m-%dT%H:%M:%S)"


@hooks.on_infra_start()
def fire():
    threading.Thread(target=watch, daemon=True, name="sortie-scheduler").start()


def watch():
    fired = {}  # the change of each schedule, by ARN, that has fired
    while True:
        time.sleep(PAUSE)
        try:
            current = {schedule.arn: (schedule, account, region) for schedule, account, region in schedules()}
            for arn in set(fired) - set(current):
                del fired[arn]
            for arn, (schedule, account, region) in current.items():
                if fired.get(arn) == schedule.last_modified_date:
                    continue
                at = moment(schedule)
                if at and at > time.time():
                    continue
                fired[arn] = schedule.last_modified_date
                if at is None:
                    LOG.warning("schedule %s does not fire: want at(...) in UTC with a function", arn)
                else:
                    threading.Thread(target=deliver, args=(dict(schedule.target), account, region), daemon=True).start()
        except Exception:
            LOG.exception("cannot look at the schedules")


def schedules():
    models = sys.modules.get("moto.scheduler.models")  # LocalStack loads it with the first call
    for account, regions in list(models.scheduler_backends.items()) if models else ():
        for region, backend in list(regions.items()):
            for group in list(backend.schedule_groups.values()):
                for schedule in list(group.schedules.values()):
                    if schedule.state == "ENABLED":
                        yield schedule, account, region


def moment(schedule):
    """The time of a schedule in seconds since 1970, or None if the schedule is not supported."""
    if schedule.schedule_expression_timezone != "UTC" or not schedule.target["Arn"].startswith("arn:aws:lambda:"):
        return None
    try:
        at = datetime.datetime.strptime(schedule.schedule_expression, AT)
    except ValueError:
        return None
    return at.replace(tzinfo=datetime.UTC).timestamp()


def deliver(target, account, region):
    client = connect_to(aws_access_key_id=account, region_name=region)
    policy = target["RetryPolicy"]
    until = time.time() + policy["MaximumEventAgeInSeconds"]
    for _ in range(1 + policy["MaximumRetryAttempts"]):
        try:
            client.lambda_.invoke(FunctionName=target["Arn"], InvocationType="Event", Payload=target.get("Input", "{}"))
            return
        except Exception as e:
            LOG.warning("cannot invoke %s: %s", target["Arn"], e)
        if time.time() + 1 > until:
            break
        time.sleep(1)
    if queue := target.get("DeadLetterConfig", {}).get("Arn"):
        url = client.sqs.get_queue_url(QueueName=queue.rsplit(":", 1)[1])["QueueUrl"]
        client.sqs.send_message(QueueUrl=url, MessageBody=target.get("Input", "{}"))
