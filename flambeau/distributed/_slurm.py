"""What Slurm tells the processes that `srun` starts, in the variables of `env://`."""
from __future__ import annotations

import os
import re
from collections.abc import Mapping

_FIRST_PORT, _PORTS = 15000, 20000


def variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT of a task of Slurm; nothing outside of one.

    The port follows from the numbers of job and step, so that all tasks know it and those of
    other jobs have another.

    >>> from flambeau.distributed._slurm import variables
    >>> variables({"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "70123",
    ...            "SLURM_JOB_NODELIST": "gpu[07-09,12],login"})
    {'RANK': '3', 'WORLD_SIZE': '8', 'MASTER_ADDR': 'gpu07', 'MASTER_PORT': '25123'}
    """
    size = environment.get("SLURM_STEP_NUM_TASKS") or environment.get("SLURM_NTASKS")
    nodes = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST")
    rank, job = environment.get("SLURM_PROCID"), environment.get("SLURM_JOB_ID", "")
    if not (rank and size and nodes and job.isdigit()):
        return {}
    step = environment.get("SLURM_STEP_ID", "")
    number = int(job) + (int(step) if step.isdigit() else 0)
    return {"RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": first_node(nodes),
            "MASTER_PORT": str(_FIRST_PORT + number % _PORTS)}


def first_node(nodes: str) -> str:
    """The first of a list of nodes as Slurm writes it: `rack1-gpu[07-09,12]-ib,login`."""
    first = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes)
    assert first is not None
    return re.sub(r"\[(\w+)[^\]]*\]", r"\1", first[0])
