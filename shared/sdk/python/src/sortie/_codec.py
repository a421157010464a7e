"""Models: frozen dataclasses that keep what they do not know."""

from __future__ import annotations

import base64
import dataclasses
import typing
from collections.abc import Mapping
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from ._time import format_time, parse_time

M = TypeVar("M", bound="Object")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Object:
    """The base of all models.

    Members that this version does not know are in extra, and to_dict returns them. A
    value of another type than documented is kept as it is. An absent member is None.
    """

    #: The entity tag that came with the object, for if_match; empty without one.
    etag: ClassVar[str] = ""
    #: The JSON names of the fields that have another name in Python.
    _names: ClassVar[Mapping[str, str]] = {}

    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)

    @classmethod
    def from_dict(cls: type[M], value: Mapping[str, Any]) -> M:
        """Make a model of a JSON object."""
        if not isinstance(value, Mapping):
            raise ValueError(f"{cls.__name__}: want an object, got {type(value).__name__}")
        fields = _fields(cls)
        known: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for name, item in value.items():
            field = fields.get(name)
            if field is None:
                extra[name] = item
            else:
                known[field[0]] = decode(field[1], item)
        for attribute in _required(cls):
            known.setdefault(attribute, None)
        return cls(**known, extra=extra)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object. An optional member that is None is left out."""
        required = _required(type(self))
        result: dict[str, Any] = {}
        for name, (attribute, kind) in _fields(type(self)).items():
            item = getattr(self, attribute)
            if item is not None or (attribute in required and NoneType in get_args(kind)):
                result[name] = encode(item)
        result.update(self.extra)
        return result


_known: dict[Any, dict[str, tuple[str, Any]]] = {}
_needed: dict[Any, frozenset[str]] = {}


def _fields(model: type[Object]) -> dict[str, tuple[str, Any]]:
    """Return the attribute and the type of each JSON name."""
    found = _known.get(model)
    if found is None:
        hints = typing.get_type_hints(model)
        found = {
            model._names.get(field.name, field.name): (field.name, hints[field.name])
            for field in dataclasses.fields(model)
            if field.name != "extra"
        }
        _known[model] = found
    return found


def _required(model: type[Object]) -> frozenset[str]:
    """Return the attributes without a default."""
    found = _needed.get(model)
    if found is None:
        missing = dataclasses.MISSING
        found = frozenset(
            f.name for f in dataclasses.fields(model) if f.default is missing and f.default_factory is missing
        )
        _needed[model] = found
    return found


def decode(kind: Any, value: Any) -> Any:
    """Return a JSON value as the type of a field. A value of another type stays as it is."""
    if value is None or kind is Any:
        return value
    origin = get_origin(kind)
    if origin is list:
        return [decode(get_args(kind)[0], item) for item in value] if isinstance(value, list) else value
    if origin is dict or origin is Mapping or origin is typing.get_origin(Mapping[str, Any]):
        if not isinstance(value, dict):
            return value
        return {name: decode(get_args(kind)[1], item) for name, item in value.items()}
    if origin is Union or origin is UnionType:
        return _decode_union([k for k in get_args(kind) if k is not NoneType], value)
    if isinstance(kind, type) and issubclass(kind, Object):
        return kind.from_dict(value) if isinstance(value, Mapping) else value
    if kind is datetime and isinstance(value, str):
        try:
            return parse_time(value)
        except ValueError:
            return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value) if abs(value) < 1 << 53 else value
    return value


def _decode_union(kinds: list[Any], value: Any) -> Any:
    if len(kinds) == 1:
        return decode(kinds[0], value)
    if isinstance(value, Mapping):
        models = [k for k in kinds if isinstance(k, type) and issubclass(k, Object)]
        if models:
            return max(models, key=lambda model: _likeness(model, value)).from_dict(value)
        kinds = [k for k in kinds if get_origin(k) is dict]
    elif isinstance(value, list):
        kinds = [k for k in kinds if get_origin(k) is list]
    elif isinstance(value, str) and datetime in kinds:
        kinds = [datetime]
    else:
        return value
    return decode(kinds[0], value) if kinds else value


def _likeness(model: type[Object], value: Mapping[str, Any]) -> int:
    """Return how well an object fits: constants first, then required, then known members."""
    likeness = 0
    for name, (attribute, kind) in _fields(model).items():
        if get_origin(kind) is Literal and name in value:
            likeness += 10_000 if value[name] in get_args(kind) else -10_000
        if attribute in _required(model):
            likeness += 100 if name in value else -100
        likeness += name in value
    return likeness


def encode(value: Any) -> Any:
    """Return a value as JSON. Bytes are base64, such as the input of a run."""
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Object):
        return value.to_dict()
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, Mapping):
        return {str(name): encode(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [encode(item) for item in value]
    return value
