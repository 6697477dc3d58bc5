"""Passes over graphs: backends."""
from flambeau._support.lazy.modules import lazy_package

__getattr__ = lazy_package(__name__)
