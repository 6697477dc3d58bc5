"""Write `pipeline_orders.json`: what each rank does in the schedules of pipelines, and the orders
that helper functions give. Run where PyTorch 2.13 is installed."""
from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

from torch.distributed.pipelining._schedule_visualizer import get_schedule_ops
from torch.distributed.pipelining.schedules import (
    _Action,
    _add_reduce_grad,
    _add_unshard_reshard,
    _get_1f1b_rank_ops,
    _merge_bw,
)

SCHEDULES = {  # stages of a rank
    "GPipe": [None], "1F1B": [None], "Interleaved1F1B": [2, 3], "LoopedBFS": [2],
    "InterleavedZeroBubble": [2, 3], "ZBVZeroBubble": [2], "DualPipeV": [2]}
ACTIONS = {
    "_add_unshard_reshard": [
        "0F0 0F1 1F0 1F1 2F0 2F1 3F0 3F1 3B0 2B0 _ 0B0 1B0",
        "(0F0;1B0)OVERLAP_F_B 2F0 (0F0;3B0)OVERLAP_F_B 4F0 5F0 6F0"],
    "_merge_bw": ["0F0 0I0 0W0 _ 0I1 _ 0W1 0I2 0W3 0I3 1W3 1I4 1W4 0W2 1I5"],
    "_add_reduce_grad": ["0F0 0I0 0W0 0F1 0I1 0W1 1F0 1F1 1B1 1B0 _ 2F0",
                         "0F0 (0F1;1B0)OVERLAP_F_B (0F2;1B1)OVERLAP_F_B _ 0F5"]}


def written(actions: list) -> str:
    return " ".join("_" if action is None else str(action) for action in actions)


def parse(text: str) -> list:
    return [None if cell == "_" else _Action.from_str(cell) for cell in text.split()]


def main() -> None:
    orders = {}
    for name, counts in SCHEDULES.items():
        for ranks, microbatches in ((2, 4), (3, 6), (4, 8)):
            for stages in counts:
                for options in ({}, {"with_comms": True},
                                {"with_comms": True, "defer_pp_recv": True}):
                    if options and (stages is None or ranks == 4):
                        continue
                    key = json.dumps([name, ranks, microbatches, stages, options])
                    with contextlib.suppress(ValueError):
                        orders[key] = [written(actions) for actions in get_schedule_ops(
                            name, ranks, microbatches, stages, **options)]
    spaced = {}
    for name in ("Interleaved1F1B", "DualPipeV"):
        with contextlib.redirect_stdout(io.StringIO()):
            spaced[name] = [written(actions) for actions in get_schedule_ops(
                name, 2, 4, add_spacing=True)]
    ranks = [written(_get_1f1b_rank_ops(
        2, 4, 5, 6, 5, rank, lambda step, rank=rank: step // 4 % 2 * 4 + rank,
        lambda step, rank=rank: (1 - (step - 5) // 4 % 2) * 4 + rank, waiting, bool(zero)))
        for rank in range(4) for waiting in (0, 2) for zero in (0, 1)]
    lowered = {
        "_add_unshard_reshard": [written(_add_unshard_reshard(parse(text), 2))
                                 for text in ACTIONS["_add_unshard_reshard"]],
        "_merge_bw": [written(_merge_bw(parse(text))) for text in ACTIONS["_merge_bw"]],
        "_add_reduce_grad": [written(_add_reduce_grad(parse(text), 2))
                             for text in ACTIONS["_add_reduce_grad"]]}
    data = {"orders": orders, "spaced": spaced, "_get_1f1b_rank_ops": ranks, "actions": ACTIONS,
            "lowered": lowered}
    path = Path(__file__).with_name("pipeline_orders.json")
    path.write_text(json.dumps(data, indent=0) + "\n")


if __name__ == "__main__":
    main()
