"""Where what sharded tensors log goes, by names of destinations."""
import logging

__all__: list[str] = []

_log_handlers: dict[str, logging.Handler] = {"default": logging.NullHandler()}
