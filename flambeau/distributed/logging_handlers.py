"""Where what process groups log goes: libraries put a handler of their own here, by name."""
import logging

__all__: list[str] = []

_log_handlers: dict[str, logging.Handler] = {"default": logging.NullHandler()}
