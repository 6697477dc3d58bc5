"""Where what checkpoints log goes."""
import logging

__all__: list[str] = []

DCP_LOGGER_NAME = "dcp_logger"
_log_handlers: dict[str, logging.Handler] = {DCP_LOGGER_NAME: logging.NullHandler()}
