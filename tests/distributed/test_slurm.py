"""What Slurm says of processes."""
import pytest

from flambeau.distributed._slurm import first_node, variables

SLURM = {"SLURM_JOB_ID": "1", "SLURM_NTASKS": "2", "SLURM_JOB_NODELIST": "localhost"}


def test_variables_of_slurm():
    task = {**SLURM, "SLURM_PROCID": "1", "SLURM_STEP_ID": "2", "SLURM_STEP_NUM_TASKS": "1"}
    assert variables(task) == {"RANK": "1", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost",
                               "MASTER_PORT": "15003"}
    assert variables(SLURM) == {}           # a shell of the job, which is not one of its tasks
    ports = {variables({**task, "SLURM_JOB_ID": str(n)})["MASTER_PORT"] for n in range(20000)}
    assert len(ports) == 20000


@pytest.mark.parametrize(("nodes", "first"), [
    ("a", "a"), ("a,b", "a"), ("gpu[07-09,12],login", "gpu07"), ("n[3,5]", "n3"),
    ("rack[1-2]-gpu[10-19]-ib,x", "rack1-gpu10-ib"), ("10.0.0.[1-4]", "10.0.0.1")])
def test_first_of_slurms_nodes(nodes, first):
    assert first_node(nodes) == first
