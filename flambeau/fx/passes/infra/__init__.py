"""Passes over graphs: infra."""
from flambeau._lazy import lazy_package

__getattr__ = lazy_package(__name__)
