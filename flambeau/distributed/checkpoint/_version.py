"""With which version what is being read was written; None where it does not say."""
from __future__ import annotations

_derived_version: str | None = None
