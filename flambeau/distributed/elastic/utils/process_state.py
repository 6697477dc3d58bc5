"""What the system says of a process: running, sleeping, stuck in the kernel."""
from __future__ import annotations

__all__ = ["is_uninterruptible_state", "read_proc_state"]


def read_proc_state(pid: int) -> str | None:
    """The letter for a process's state in `/proc`; None if there is no such process, or no `/proc`.
    """
    try:
        with open(f"/proc/{pid}/stat") as file:
            # the name of the program, in parentheses, may hold spaces and parentheses
            return file.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return None


def is_uninterruptible_state(state: str | None) -> bool:
    """Does the process wait in the kernel, where no signal reaches it?

    >>> is_uninterruptible_state("D"), is_uninterruptible_state("S")
    (True, False)
    """
    return state == "D"
