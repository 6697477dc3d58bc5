"""A process beside each of the program writes."""
from __future__ import annotations

import pytest

WRITTEN_BESIDE = """
from flambeau.distributed import checkpoint as dcp
Kind = dcp.state_dict_saver.AsyncCheckpointerType
for kind in Kind:
    for step in range(2):
        weight = torch.full((3,), float(rank + step))
        saved = dcp.async_save({f"w{rank}": weight}, checkpoint_id=f"{path}/{kind}{step}",
                               async_checkpointer_type=kind)
        for _ in range(20):                     # the collectives of the program go on
            dist.all_reduce(weight)
        assert sorted(saved.result(60).state_dict_metadata) == ["w0", "w1"]
        found = {"w0": torch.zeros(3), "w1": torch.zeros(3)}
        dcp.load(found, checkpoint_id=f"{path}/{kind}{step}")
        assert found["w0"][0] == step and found["w1"][0] == 1 + step
with pytest.raises(dcp.CheckpointException, match="Checkpoint already exists"):
    dcp.async_save({"w": weight}, storage_writer=dcp.FileSystemWriter(
        f"{path}/{kind}1", overwrite=False), async_checkpointer_type=kind).result(60)
say("done")
"""


@pytest.mark.parametrize("size", [1, 2])
def test_a_thread_or_a_process_writes_while_the_program_goes_on(job, tmp_path, size):
    program = WRITTEN_BESIDE if size == 2 else WRITTEN_BESIDE.replace(
        '["w0", "w1"]', '["w0"]').replace('"w0": torch.zeros(3), "w1": torch.zeros(3)',
        '"w0": torch.zeros(3)').replace(' and found["w1"][0] == 1 + step', "")
    said, codes = job(f"path = {str(tmp_path)!r}\n{program}", size=size, backend="gloo")
    assert said == [["done"]] * size and codes == [0] * size
