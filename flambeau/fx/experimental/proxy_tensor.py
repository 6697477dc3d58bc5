"""Tracing below Python: there is none, `flambeau.fx.symbolic_trace` follows Python's calls."""

__all__ = ["get_proxy_mode"]


def get_proxy_mode() -> None:
    """The tracer at work: never one."""
