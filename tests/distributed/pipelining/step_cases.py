"""A model of blocks, and its steps over several processes."""
from __future__ import annotations

import flambeau
from flambeau import nn
from flambeau.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)
from flambeau.distributed.pipelining._utils import generate_rank_to_stage_mapping

CPU = flambeau.device("cpu")

SINGLE = [ScheduleGPipe, Schedule1F1B]

LOOPED = [ScheduleInterleaved1F1B, ScheduleLoopedBFS, ScheduleInterleavedZeroBubble]

V = [ScheduleZBVZeroBubble, ScheduleDualPipeV]

loss_fn = nn.functional.mse_loss


class Block(nn.Module):
    """A residual block with statistics, dropout and a second value that passes through."""

    def __init__(self, size: int):
        super().__init__()
        self.up = nn.Linear(size, 2 * size)
        self.norm = nn.LayerNorm(2 * size)
        self.down = nn.Linear(2 * size, size, bias=False)
        self.scale = nn.Parameter(flambeau.ones(size))

    def forward(self, x, mask):
        return x + self.down(flambeau.tanh(self.norm(self.up(x)))) * self.scale * mask, mask


class First(Block):
    def forward(self, x, mask):
        return super().forward(x * 2, mask)


class Last(Block):
    def forward(self, x, mask):
        return super().forward(x, mask)[0]


def blocks(count: int, size: int = 4) -> list[nn.Module]:
    flambeau.manual_seed(1)
    kinds = [First] + [Block] * (count - 2) + [Last]
    return [kind(size) for kind in kinds]


def batch(rows: int = 12, size: int = 4):
    generator = flambeau.Generator().manual_seed(2)
    draw = lambda: flambeau.randn(rows, size, generator=generator)
    return draw(), draw().gt(0).float(), draw()


def expected(count: int, microbatches: int):
    """Losses and gradients of the whole model in one process."""
    model = blocks(count)
    losses = []
    x, mask, target = batch()
    for part in zip(*(value.tensor_split(microbatches) for value in (x, mask, target))):
        values = part[:2]
        for block in model:
            values = block(*values)
        loss = loss_fn(values, part[2])
        loss.backward()
        losses.append(loss.item())
    return losses, [[p.grad / microbatches for p in block.parameters()] for block in model]


def run_steps(rank, kind, microbatches, size, per_rank, steps, options):
    """Some steps, of which all but the last are forgotten, and an evaluation in between."""
    count = size * per_rank
    style = "v" if kind in V else "loop"
    mine = generate_rank_to_stage_mapping(size, count, style)[rank]
    model = blocks(count)
    stages = [PipelineStage(model[place], place, count, CPU) for place in mine]
    schedule = kind(stages if per_rank > 1 else stages[0], microbatches, loss_fn=loss_fn,
                    **options)
    x, mask, target = batch()
    losses: list = []
    for step in range(steps):
        for stage in stages:
            stage.submod.zero_grad()
        args = (x, mask) if any(stage.is_first for stage in stages) else ()
        at_end = any(stage.is_last for stage in stages)
        output = schedule.step(*args, target=target if at_end else None, losses=losses)
        if step == 0 and steps > 1:
            before = [p.grad.clone() for stage in stages for p in stage.submod.parameters()]
            evaluated = schedule.eval(*args, target=target if at_end else None)
            after = [p.grad for stage in stages for p in stage.submod.parameters()]
            assert all(flambeau.equal(a, b) for a, b in zip(before, after, strict=True))
            if at_end:
                flambeau.testing.assert_close(evaluated, output)
    wanted_losses, wanted = expected(count, microbatches)
    if at_end:
        flambeau.testing.assert_close([loss.item() for loss in losses], wanted_losses)
        assert output.shape == (12, 4)
    else:
        assert output is None and losses == []
    for stage in stages:
        grads = [p.grad for p in stage.submod.parameters()]
        flambeau.testing.assert_close(grads, wanted[stage.stage_index])
