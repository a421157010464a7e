"""Streams the answers of REST integrations with ResponseTransferMode STREAM, which LocalStack 4.14 rejects.

The integration puts a Sink under the request's id and invokes the function in a thread. The executor feeds the Sink each
chunk as it is flushed; the integration answers as soon as the prelude (JSON, then eight NUL bytes) is whole, and its body
is the rest as it comes. As on AWS, the function continues when the client leaves.
"""

import json
import logging
import queue
import threading
from concurrent.futures import Future

from localstack.runtime import hooks

LOG = logging.getLogger(__name__)
INVOKE, INVOKE_STREAMING = "path/2015-03-31/functions/", "path/2021-11-15/functions/"
END_OF_PRELUDE = b"\0" * 8
SINKS: dict[str, "Sink"] = {}


class Sink:
    """One streamed answer: its head, and its body as an iterator."""

    def __init__(self):
        self.head, self._start, self._chunks = Future(), b"", queue.Queue()

    def feed(self, chunk: bytes):
        if self.head.done():
            self._chunks.put(chunk)
            return
        self._start += chunk
        prelude, found, rest = self._start.partition(END_OF_PRELUDE)
        if not found:
            return
        if rest:
            self._chunks.put(rest)
        try:
            self.head.set_result(json.loads(prelude))
        except ValueError as e:
            self.head.set_exception(e)

    def end(self, result):
        if not self.head.done():
            self.head.set_exception(RuntimeError(f"the answer has no prelude: {result!r:.300}"))
        self._chunks.put(None)

    def __iter__(self):
        return iter(self._chunks.get, None)


@hooks.on_infra_start()
def stream():
    from localstack.aws.api.lambda_ import InvocationType
    from localstack.aws.protocol.serializer import gen_amzn_requestid
    from localstack.services.apigateway.legacy import provider
    from localstack.services.apigateway.next_gen.execute_api.gateway_response import IntegrationFailureError
    from localstack.services.apigateway.next_gen.execute_api.integrations import aws
    from localstack.services.lambda_.api_utils import FULL_FN_ARN_PATTERN
    from localstack.services.lambda_.invocation.lambda_service import LambdaService
    from werkzeug.datastructures import Headers

    services = []
    init = LambdaService.__init__

    def remember(self, *args, **kwargs):
        init(self, *args, **kwargs)
        services.append(self)

    def invoke(arn, event):
        function = FULL_FN_ARN_PATTERN.search(arn).groupdict()
        request_id, sink = gen_amzn_requestid(), Sink()
        SINKS[request_id] = sink

        def run():
            result = None
            try:
                result = services[-1].invoke(
                    function_name=function["function_name"],
                    qualifier=function["qualifier"],
                    region=function["region_name"],
                    account_id=function["account_id"],
                    invocation_type=InvocationType.RequestResponse,
                    client_context="{}",
                    payload=json.dumps(event).encode(),
                    request_id=request_id,
                )
            except Exception as e:
                result = e
            finally:
                SINKS.pop(request_id, None)
                sink.end(result)

        threading.Thread(target=run, daemon=True, name=f"stream-{request_id}").start()
        return sink.head.result(), sink

    parse = provider.parse_arn  # by which PutIntegration checks the URI

    def parse_arn(arn):
        parts = parse(arn)
        return {**parts, "resource": parts["resource"].replace(INVOKE_STREAMING, INVOKE, 1)}

    buffered = aws.RestApiAwsProxyIntegration.invoke

    def answer(self, context):
        uri = context.integration_request["uri"]
        if INVOKE_STREAMING not in uri:
            return buffered(self, context)
        arn = uri.split("functions/")[1].removesuffix("/response-streaming-invocations")
        try:
            head, body = invoke(arn, self.create_lambda_input_event(context))
        except Exception as e:
            LOG.warning("cannot stream from %s: %s", arn, e)
            raise IntegrationFailureError("Internal server error", status_code=502) from e
        given = {"headers": head.get("headers") or {}, "multiValueHeaders": head.get("multiValueHeaders") or {}}
        headers = Headers({"Content-Type": "application/json"})
        headers.update(self._merge_lambda_response_headers(given))
        return aws.EndpointResponse(headers=headers, body=body, status_code=int(head.get("statusCode") or 200))

    LambdaService.__init__ = remember
    provider.parse_arn = parse_arn
    aws.RestApiAwsProxyIntegration.invoke = answer
