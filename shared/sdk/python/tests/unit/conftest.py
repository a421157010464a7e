from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from plane import Plane


@pytest.fixture
def plane(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plane]:
    """A control plane, with its envelope in the environment."""
    plane = Plane()
    monkeypatch.setenv("TASK_ENVELOPE", plane.envelope())
    yield plane
    plane.close()


@pytest.fixture
def envelope(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replace members of the envelope."""
    return lambda **more: monkeypatch.setenv("TASK_ENVELOPE", plane.envelope(**more))
