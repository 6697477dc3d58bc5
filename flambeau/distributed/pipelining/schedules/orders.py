"""The orders in which a rank computes: pure functions of rank, ranks, stages and microbatches.

A None stands for a step in which the rank waits for another one. Where the stages of a rank are
`rank, rank + ranks, …` the pipeline is looped; in a V the second stage of a rank is the mirror of
its first, so that the last rank hands a microbatch on to itself.
"""
from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

from .actions import (
    BACKWARD_INPUT,
    BACKWARD_WEIGHT,
    FORWARD,
    FULL_BACKWARD,
    OVERLAP_F_B,
    _Action,
    _ComputationType,
)

Order = list[_Action | None]


def gpipe_order(ranks: int, n_microbatches: int) -> dict[int, Order]:
    """All forwards, then all backwards."""
    return {rank: [*[None] * rank,
                   *(_Action(rank, FORWARD, i) for i in range(n_microbatches)),
                   *[None] * (3 * (ranks - 1 - rank)),
                   *(_Action(rank, FULL_BACKWARD, i) for i in range(n_microbatches))]
            for rank in range(ranks)}


def one_f_one_b_order(ranks: int, n_microbatches: int) -> dict[int, Order]:
    """Forwards until the first backward can come, then one forward and one backward in turn."""
    return {rank: _one_f_one_b(rank, ranks, n_microbatches) for rank in range(ranks)}


def _one_f_one_b(rank: int, ranks: int, n_microbatches: int) -> Order:
    warmup = ranks - 1 - rank
    # PyTorch numbers the forwards of the last rank from 1, as the others' after their warmup
    first = max(warmup, 1)
    order: Order = [None] * rank
    order += [_Action(rank, FORWARD, i) for i in range(warmup)]
    order += [None] * (2 * warmup)
    steady = n_microbatches - warmup
    for i in range(steady):
        order += [_Action(rank, FORWARD, first + i), _Action(rank, FULL_BACKWARD, i)]
    for i in range(steady, n_microbatches):
        order += [None, _Action(rank, FULL_BACKWARD, i)]
    return order


def looped_bfs_order(rank: int, ranks: int, local_stages: int, n_microbatches: int) -> Order:
    """Breadth first: a stage does all microbatches before the next stage of the rank begins."""
    stages = range(rank, ranks * local_stages, ranks)
    order: Order = [None] * rank
    order += [_Action(stage, FORWARD, i) for stage in stages for i in range(n_microbatches)]
    order += [None] * (2 * (ranks - 1 - rank))
    order += [_Action(stage, FULL_BACKWARD, i)
              for stage in reversed(stages) for i in reversed(range(n_microbatches))]
    return order


def _get_warmup_ops(rank: int, n_local_stages: int, microbatches_per_round: int,
                    pp_group_size: int, n_microbatches: int, multiply_factor: int = 2) -> int:
    """How many forwards a rank does before its first backward."""
    before_last_stage = (n_local_stages - 1) * microbatches_per_round
    until_gradient = multiply_factor * (pp_group_size - 1 - rank)
    return min(before_last_stage + until_gradient, n_microbatches * n_local_stages)


def _get_1f1b_rank_ops(n_local_stages: int, pp_group_size: int, warmup_ops: int, fwd_bwd_ops: int,
                       cooldown_ops: int, rank: int,
                       forward_stage_index: Callable[[int], int],
                       backward_stage_index: Callable[[int], int],
                       num_1f1b_microbatches: int = 0,
                       enable_zero_bubble: bool = False) -> Order:
    """Warmup, forwards and backwards in turn, and cooldown of a rank of a looped pipeline.

    With `enable_zero_bubble` a backward computes the gradients of its input only; those of the
    weights follow `num_1f1b_microbatches` backwards later, and fill what waiting there is.
    """
    forwards: Counter[int] = Counter()
    backwards: Counter[int] = Counter()
    weights: deque[_Action] = deque()       # backwards whose gradients of weights are to come
    order: Order = [None] * rank
    kind = BACKWARD_INPUT if enable_zero_bubble else FULL_BACKWARD

    def next_forward(step: int) -> _Action:
        stage = forward_stage_index(step)
        forwards[stage] += 1
        return _Action(stage, FORWARD, forwards[stage] - 1)

    def next_backward(step: int) -> _Action:
        stage = backward_stage_index(step)
        backwards[stage] += 1
        action = _Action(stage, kind, backwards[stage] - 1)
        if enable_zero_bubble:
            weights.append(action._replace(computation_type=BACKWARD_WEIGHT))
        return action

    order += [next_forward(step) for step in range(warmup_ops)]
    if enable_zero_bubble:
        wait = pp_group_size - 1 - rank
    else:                       # until the first microbatch has gone down and its gradient come up
        first_gradient = n_local_stages * pp_group_size + 2 * (pp_group_size - 1 - rank)
        wait = first_gradient - (warmup_ops + rank)
    order += [None] * wait
    for step in range(fwd_bwd_ops + cooldown_ops):
        if step < fwd_bwd_ops:
            order.append(next_forward(warmup_ops + step))
        elif not enable_zero_bubble:
            order.append(None)
        order.append(next_backward(warmup_ops + step))
        if weights and step >= num_1f1b_microbatches:
            order.append(weights.popleft())
    return order + list(weights)


def interleaved_order(rank: int, ranks: int, local_stages: int, n_microbatches: int,
                      rounds: int, zero_bubble: bool = False) -> Order:
    """A rank of a looped pipeline that does a round of microbatches with each stage in turn."""
    per_round = n_microbatches // rounds
    warmup = _get_warmup_ops(rank, local_stages, per_round, ranks, n_microbatches,
                             1 if zero_bubble else 2)
    total = local_stages * n_microbatches

    def forward_stage(step: int) -> int:
        return step // per_round % local_stages * ranks + rank

    def backward_stage(step: int) -> int:
        return (local_stages - 1 - (step - warmup) // per_round % local_stages) * ranks + rank

    return _get_1f1b_rank_ops(
        local_stages, ranks, warmup, total - warmup, warmup, rank, forward_stage, backward_stage,
        num_1f1b_microbatches=rank if zero_bubble else 0, enable_zero_bubble=zero_bubble)


def add_bubbles(orders: dict[int, Order], n_stages: int) -> dict[int, Order]:
    """The orders with a None wherever an action needs one of another rank that is not yet done."""
    waiting = {rank: deque(orders[rank]) for rank in sorted(orders)}
    result: dict[int, Order] = {rank: [] for rank in waiting}
    seen: set[tuple[int, _ComputationType, int]] = set()

    def must_wait(action: _Action | None) -> bool:
        if action is None:
            return False
        stage, kind, microbatch, _ = action
        if kind == FORWARD:
            return stage > 0 and (stage - 1, FORWARD, microbatch) not in seen
        if kind == FULL_BACKWARD:       # a split backward has its gaps from its order
            needed = (stage, FORWARD) if stage == n_stages - 1 else (stage + 1, FULL_BACKWARD)
            return (*needed, microbatch) not in seen
        return False

    while any(waiting.values()):
        done = []                           # of this step: others see it at the next one
        for rank, actions in waiting.items():
            if not actions:
                continue
            if must_wait(actions[0]):
                result[rank].append(None)
                continue
            action = actions.popleft()
            result[rank].append(action)
            if action is not None:
                done.append((action[0], action[1], action[2]))
        if not done and not any(actions and actions[0] is None for actions in waiting.values()):
            break
        seen.update(done)
    return result


class _Chunks:
    """What a rank of a V has done: of each of its two stages, the next microbatch of each kind."""

    def __init__(self, rank: int, n_stages: int):
        self.stages = (rank, n_stages - 1 - rank)
        self.next: Counter[tuple[int, _ComputationType]] = Counter()
        self.order: Order = []
        self.weights: deque[_Action] = deque()          # input gradients whose W is to come

    def take(self, chunk: int, kind: _ComputationType) -> _Action:
        """The next action of this kind; a full backward goes on where input gradients ended."""
        counted = BACKWARD_INPUT if kind == FULL_BACKWARD else kind
        action = _Action(self.stages[chunk], kind, self.next[chunk, counted])
        self.next[chunk, counted] += 1
        return action

    def add(self, chunk: int, *kinds: _ComputationType) -> None:
        self.order += [self.take(chunk, kind) for kind in kinds]

    def backward(self, chunk: int, split: bool = False) -> None:
        """A full backward; with `split` that of the input, and that of the weights for later."""
        action = self.take(chunk, BACKWARD_INPUT if split else FULL_BACKWARD)
        self.order.append(action)
        if split:
            self.weights.append(action._replace(computation_type=BACKWARD_WEIGHT))

    def weight(self) -> None:
        if self.weights:
            self.order.append(self.weights.popleft())

    def overlap(self, forward: int, backward: int) -> None:
        parts = (self.take(forward, FORWARD), self.take(backward, FULL_BACKWARD))
        self.order.append(_Action(-1, OVERLAP_F_B, None, parts))


def zbv_order(rank: int, ranks: int, n_stages: int, n_microbatches: int) -> Order:
    """The zero bubble schedule of a V (Qi et al. 2024, "Pipeline Parallelism with Controllable
    Memory")."""
    # the phases below need so many; steps of microbatches that are not there stay empty
    n = max(2 * ranks - 1, n_microbatches)
    chunks = _Chunks(rank, n_stages)
    forwards, inputs, weights = FORWARD, BACKWARD_INPUT, BACKWARD_WEIGHT
    for _ in range(2 * (ranks - rank) - 1):
        chunks.add(0, forwards)
    for _ in range(rank):
        chunks.add(1, forwards)
        chunks.add(0, forwards)
    for _ in range(ranks - rank):
        chunks.add(1, forwards, inputs, weights)
    done = chunks.next
    while done[1, forwards] < done[0, forwards] or done[0, forwards] < n:
        if done[0, forwards] < n:
            chunks.add(0, forwards)
        chunks.add(0, inputs, weights)
        chunks.add(1, forwards, inputs, weights)
    for _ in range(rank):
        chunks.add(0, inputs)
        chunks.add(1, inputs)
    for _ in range(ranks - rank):
        chunks.add(0, inputs, weights)
    for chunk in (1, 0):
        while done[chunk, weights] < done[chunk, inputs]:
            chunks.add(chunk, weights)
    return [None] * rank + [action if action.microbatch_index < n_microbatches else None
                            for action in chunks.order]


def dual_pipe_v_order(rank: int, ranks: int, n_stages: int, n_microbatches: int) -> Order:
    """DualPipeV (DeepSeek-AI 2025): forwards of one stage overlap backwards of the other one."""
    chunks = _Chunks(rank, n_stages)
    after = ranks - 1 - rank                # ranks behind this one
    for _ in range(2 * after):
        chunks.add(0, FORWARD)
    for _ in range(rank + 1):
        chunks.add(0, FORWARD)
        chunks.add(1, FORWARD)
    for _ in range(after):
        chunks.backward(1, split=True)
        chunks.weight()
        chunks.add(1, FORWARD)
    for step in range(n_microbatches - 2 * ranks + rank + 1):
        if step == 0 and after == 0:        # it has just done this forward: nothing to overlap
            chunks.add(0, FORWARD)
            chunks.backward(1)
        else:
            chunks.overlap(0, 1)
        chunks.overlap(1, 0)
    for _ in range(after):
        chunks.backward(1)
        chunks.overlap(1, 0)
    split, half = False, (rank + 1) // 2
    for step in range(rank + 1):
        split = split or (step == half and rank % 2 == 1)
        chunks.backward(1, split)
        split = split or (step == half and rank % 2 == 0)
        chunks.backward(0, split)
    for _ in range(after):
        chunks.weight()
        chunks.backward(0, split=True)
    for _ in range(rank + 1):
        chunks.weight()
    return chunks.order
