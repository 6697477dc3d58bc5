"""Error files: why a process has failed, as JSON."""
from __future__ import annotations

import faulthandler
import json
import os
import time
import traceback
from typing import Any

from flambeau.distributed.elastic.utils.logging import get_logger

__all__ = ["ErrorHandler"]

logger = get_logger(__name__)


class ErrorHandler:
    """Writes errors to the file that `TORCHELASTIC_ERROR_FILE` names."""

    def _get_error_file_path(self) -> str | None:
        return os.environ.get("TORCHELASTIC_ERROR_FILE")

    def initialize(self) -> None:
        """Have Python print where a crash happened."""
        try:
            faulthandler.enable(all_threads=True)
        except Exception as error:              # there may be no real stderr
            logger.warning("Unable to enable fault handler. %s: %s", type(error).__name__, error)

    def _write_error_file(self, file_path: str, error_msg: str) -> None:
        try:
            with open(file_path, "w") as file:
                file.write(error_msg)
        except Exception as error:
            logger.warning("Unable to write error to file. %s: %s", type(error).__name__, error)

    def record_exception(self, e: BaseException) -> None:
        """Write an error to the file, if there is one."""
        path = self._get_error_file_path()
        if not path:
            return
        about = {"message": {"message": f"{type(e).__name__}: {e}", "extraInfo": {
            "py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}}}
        self._write_error_file(path, json.dumps(about))

    def override_error_code_in_rootcause_data(
            self, rootcause_error_file: str, rootcause_error: dict[str, Any],
            error_code: int = 0) -> None:
        """Put an exit code into what an error file says."""
        if "message" not in rootcause_error:
            logger.warning("child error file (%s) does not have field `message`. \n"
                           "cannot override error code: %s", rootcause_error_file, error_code)
        elif isinstance(rootcause_error["message"], str):
            logger.warning("child error file (%s) has a new message format. \n"
                           "skipping error code override", rootcause_error_file)
        else:
            rootcause_error["message"]["errorCode"] = error_code

    def dump_error_file(self, rootcause_error_file: str, error_code: int = 0) -> None:
        """Write another process's error file, the root cause, as one's own."""
        with open(rootcause_error_file) as file:
            about = json.load(file)
        if error_code:
            self.override_error_code_in_rootcause_data(rootcause_error_file, about, error_code)
        path = self._get_error_file_path()
        if path:
            self._rm(path)
            self._write_error_file(path, json.dumps(about))
        else:
            logger.error("no error file defined for parent, to copy child error file (%s)",
                         rootcause_error_file)

    def _rm(self, my_error_file: str) -> None:
        if not os.path.isfile(my_error_file):
            return
        with open(my_error_file) as file:
            content = file.read()
        try:
            content = json.dumps(json.loads(content), indent=2)
        except ValueError:
            pass
        logger.warning("%s already exists and will be overwritten. Original contents:\n%s",
                       my_error_file, content)
        os.remove(my_error_file)
