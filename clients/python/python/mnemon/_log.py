"""The log of this package."""

from __future__ import annotations

import logging

log = logging.getLogger("mnemon")
# A program that does not ask for the log gets none.
log.addHandler(logging.NullHandler())
