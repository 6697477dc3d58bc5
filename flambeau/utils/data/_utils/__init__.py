"""What a data loader is made of: collation, fetching, worker processes, and moving of tensors."""
import atexit
import sys

from flambeau.utils.data._utils import collate, fetch, pin_memory, signal_handling, transfer, worker
from flambeau.utils.data._utils.pin_memory import MP_STATUS_CHECK_INTERVAL

IS_WINDOWS = sys.platform == "win32"
HAS_NUMPY = True
python_exit_status = False


def _set_python_exit_flag() -> None:
    """Remember that the interpreter ends: loaders need not be taken down one by one."""
    global python_exit_status
    python_exit_status = True


atexit.register(_set_python_exit_flag)

__all__ = ["HAS_NUMPY", "IS_WINDOWS", "MP_STATUS_CHECK_INTERVAL", "collate", "fetch", "pin_memory",
           "python_exit_status", "signal_handling", "transfer", "worker"]
