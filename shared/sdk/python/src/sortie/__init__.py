"""The Python SDK of Sortie: worker, client, models, webhooks and errors."""

from __future__ import annotations

import logging

__version__ = "0.1.0"

logging.getLogger("sortie").addHandler(logging.NullHandler())
