"""What the groups of calls share: models and pages of answers, for both clients."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import httpx

from .._codec import Object
from ..errors import ConnectionFailed
from ._core import AsyncTransport, Call, Transport, call_of, path_of

M = TypeVar("M", bound=Object)
T = TypeVar("T")
P = TypeVar("P", bound=Object)


def json_of(response: httpx.Response) -> dict[str, Any]:
    """Return the object of an answer."""
    try:
        value = json.loads(response.content)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        place = str(response.request.url).split("?", 1)[0]
        raise ConnectionFailed(f"{place}: the answer is not a JSON object")
    return value


def model_of(response: httpx.Response, model: type[M], tagged: bool) -> M:
    """Return the model of an answer, with its entity tag."""
    value = model.from_dict(json_of(response))
    if tagged:
        object.__setattr__(value, "etag", response.headers.get("ETag", ""))
    return value


class Resource:
    """A group of calls."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    _path = staticmethod(path_of)

    def _call(self, method: str, path: str, **options: Any) -> Call:
        return call_of(self._transport.settings, method, path, **options)

    def _json(self, method: str, path: str, model: type[M], *, tagged: bool = False, **options: Any) -> M:
        return model_of(self._transport.request(self._call(method, path, **options)), model, tagged)

    def _dict(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        return json_of(self._transport.request(self._call(method, path, accept="*/*", **options)))

    def _text(self, method: str, path: str, **options: Any) -> str:
        return self._transport.request(self._call(method, path, accept="*/*", **options)).text

    def _none(self, method: str, path: str, **options: Any) -> None:
        self._transport.request(self._call(method, path, **options))

    def _pages(
        self,
        path: str,
        page: type[P],
        items: str,
        following: str,
        *,
        query: Mapping[str, Any],
        **options: Any,
    ) -> Pages[Any, P]:
        def get(place: Any) -> P:
            name = "cursor" if following == "next_cursor" else "after"
            asked = dict(query) if place is None else {**query, name: place}
            return self._json("GET", path, page, query=asked, **options)

        return Pages(get, items, following)


class AsyncResource:
    """A group of calls of async code."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    _path = staticmethod(path_of)

    def _call(self, method: str, path: str, **options: Any) -> Call:
        return call_of(self._transport.settings, method, path, **options)

    async def _json(
        self, method: str, path: str, model: type[M], *, tagged: bool = False, **options: Any
    ) -> M:
        return model_of(await self._transport.request(self._call(method, path, **options)), model, tagged)

    async def _dict(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        return json_of(await self._transport.request(self._call(method, path, accept="*/*", **options)))

    async def _text(self, method: str, path: str, **options: Any) -> str:
        return (await self._transport.request(self._call(method, path, accept="*/*", **options))).text

    async def _none(self, method: str, path: str, **options: Any) -> None:
        await self._transport.request(self._call(method, path, **options))

    def _pages(
        self,
        path: str,
        page: type[P],
        items: str,
        following: str,
        *,
        query: Mapping[str, Any],
        **options: Any,
    ) -> AsyncPages[Any, P]:
        async def get(place: Any) -> P:
            name = "cursor" if following == "next_cursor" else "after"
            asked = dict(query) if place is None else {**query, name: place}
            return await self._json("GET", path, page, query=asked, **options)

        return AsyncPages(get, items, following)


def _place_after(page: Object, following: str, place: Any) -> Any:
    """Return the place of the next page; None behind the last one."""
    following_place = getattr(page, following)
    if following == "next" and following_place == place:
        return None  # the end of a stream: the cursor stays the same
    return following_place


class Pages(Generic[T, P]):
    """The items of all pages. pages() returns the pages. Each iteration reads them again."""

    def __init__(self, get: Callable[[Any], P], items: str, following: str) -> None:
        self._get = get
        self._items = items
        self._following = following

    def pages(self) -> Iterator[P]:
        """Return the pages. A page may be empty although another follows."""
        place = None
        while True:
            page = self._get(place)
            yield page
            place = _place_after(page, self._following, place)
            if place is None:
                return

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from getattr(page, self._items) or ()


class AsyncPages(Generic[T, P]):
    """The items of all pages, for ``async for``. pages() returns the pages."""

    def __init__(self, get: Callable[[Any], Any], items: str, following: str) -> None:
        self._get = get
        self._items = items
        self._following = following

    async def pages(self) -> AsyncIterator[P]:
        """Return the pages. A page may be empty although another follows."""
        place = None
        while True:
            page: P = await self._get(place)
            yield page
            place = _place_after(page, self._following, place)
            if place is None:
                return

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in getattr(page, self._items) or ():
                yield item
