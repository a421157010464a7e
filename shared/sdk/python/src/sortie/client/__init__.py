"""The client of the API.

    with Client() as client:
        run = client.runs.create({"image": "exec:/bin/echo", "command": ["hello"]})
        client.runs.wait(run.run_id, check=True)

A local system runs programs of its host for the token in its folder, ``.sortie/token``.

It needs httpx, the extra ``client`` of the package.
"""

from __future__ import annotations

try:
    import httpx
except ImportError as error:  # pragma: no cover
    raise ImportError("sortie.client needs httpx, the extra client: sortie[client]") from error

from . import _async_resources as waiting
from . import _calls as calls
from . import _resources as direct
from ._base import AsyncPages, Pages
from ._core import AsyncTransport, Settings, Transport
from ._requests import Stored, WebSocketAddress, log_bytes
from ._streams import AsyncEventStream, EventStream, StreamEvent

__all__ = [
    "AsyncClient",
    "AsyncEventStream",
    "AsyncPages",
    "Client",
    "EventStream",
    "Pages",
    "Stored",
    "StreamEvent",
    "WebSocketAddress",
    "log_bytes",
]


class Client:
    """A client. It is safe for concurrent use by threads.

    url, token: by default SORTIE_URL and SORTIE_TOKEN, or else http://127.0.0.1:8080 and none.
    timeout: seconds to connect, to send and between two reads.
    retries: how often a request is sent again that failed in the network, or with 429 or
    5xx. A request that has an effect is sent again only if it has an idempotency key, which
    methods with idempotency_key choose by themselves, or if the server has not done it.
    http: a client of httpx to use; it is not closed.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 2,
        http: httpx.Client | None = None,
    ) -> None:
        self._transport = Transport(Settings.of(url, token, timeout, retries), http)
        transport = self._transport
        self.runs = direct.Runs(transport)
        self.tasks = direct.Tasks(transport)
        self.jobs = direct.Jobs(transport)
        self.events = direct.Events(transport)
        self.webhooks = calls.WebhooksCalls(transport)
        self.pools = calls.PoolsCalls(transport)
        self.models = calls.ModelsCalls(transport)
        self.artifacts = direct.Artifacts(transport)
        self.exports = calls.ExportsCalls(transport)
        self.inference = direct.Inference(transport)
        self.openai = direct.OpenAI(transport)
        self.workers = calls.WorkersCalls(transport)
        self.server = calls.ServerCalls(transport)

    @property
    def url(self) -> str:
        """The address of the API."""
        return self._transport.settings.url

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient:
    """Client for async code. Use it in one event loop, with ``async with``."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 2,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._transport = AsyncTransport(Settings.of(url, token, timeout, retries), http)
        transport = self._transport
        self.runs = waiting.AsyncRuns(transport)
        self.tasks = waiting.AsyncTasks(transport)
        self.jobs = waiting.AsyncJobs(transport)
        self.events = waiting.AsyncEvents(transport)
        self.webhooks = calls.AsyncWebhooksCalls(transport)
        self.pools = calls.AsyncPoolsCalls(transport)
        self.models = calls.AsyncModelsCalls(transport)
        self.artifacts = waiting.AsyncArtifacts(transport)
        self.exports = calls.AsyncExportsCalls(transport)
        self.inference = waiting.AsyncInference(transport)
        self.openai = waiting.AsyncOpenAI(transport)
        self.workers = calls.AsyncWorkersCalls(transport)
        self.server = calls.AsyncServerCalls(transport)

    @property
    def url(self) -> str:
        """The address of the API."""
        return self._transport.settings.url

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
