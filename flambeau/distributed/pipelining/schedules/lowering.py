"""From the computations of each rank to all it does: gathering parameters, sending, receiving.

Each step takes the actions of the one before: `_merge_bw` and `_add_unshard_reshard` and
`_add_reduce_grad` those of one rank, `_add_send_recv` and `_defer_recv_ops` those of all.
"""
from __future__ import annotations

import functools
from collections import Counter, deque
from collections.abc import Callable, Iterable

from .actions import (
    BACKWARD_INPUT,
    BACKWARD_WEIGHT,
    FORWARD,
    FULL_BACKWARD,
    RECV_B,
    RECV_F,
    REDUCE_GRAD,
    RESHARD,
    SEND_B,
    SEND_F,
    UNSHARD,
    _Action,
    _format_pipeline_order,
    _requires_reduce_grad,
    parts_of,
)

Actions = list[_Action]
Orders = dict[int, list[_Action | None]]
_INPUT_GRADIENT = (BACKWARD_INPUT, FULL_BACKWARD)


def _add_unshard_reshard(compute_actions: list[_Action | None],
                         max_active_stages: int = 3) -> Actions:
    """Gather the parameters of the next stages ahead of their use, and free those of others."""
    actions = [action for action in compute_actions if action is not None]
    active: set[int] = set()
    result: Actions = []
    for place, action in enumerate(actions):
        soon = _next_stages(actions[place:], max_active_stages)
        unneeded = sorted(active - set(soon))
        result += [_Action(stage, RESHARD) for stage in unneeded]
        result += [_Action(stage, UNSHARD) for stage in soon if stage not in active]
        active = active.difference(unneeded).union(soon)
        result.append(action)
    return result + [_Action(stage, RESHARD) for stage in sorted(active)]


def _next_stages(actions: Iterable[_Action], count: int) -> list[int]:
    """The next `count` different stages, in the order of their use: more where an action needs
    several at once."""
    found: dict[int, None] = {}
    for action in actions:
        if len(found) >= count:
            break
        found.update((part.stage_index, None) for part in parts_of(action))
    return list(found)


def _merge_bw(compute_actions: list[_Action | None]) -> Actions:
    """Make one full backward of an input's and a weight's that directly follow one another."""
    result: Actions = []
    for action in compute_actions:
        if action is None:
            continue
        before = result[-1] if result else None
        if (before is not None and action.computation_type == BACKWARD_WEIGHT
                and before == action._replace(computation_type=BACKWARD_INPUT)):
            result[-1] = action._replace(computation_type=FULL_BACKWARD)
        else:
            result.append(action)
    return result


def _add_reduce_grad(actions: list[_Action | None], n_microbatches: int) -> Actions:
    """Reduce the gradients of a stage once all its microbatches have given theirs."""
    complete: Counter[int] = Counter()
    result: Actions = []
    for action in actions:
        if action is None:
            continue
        result.append(action)
        for part in parts_of(action):
            if _requires_reduce_grad(part.computation_type):
                complete[part.stage_index] += 1
                if complete[part.stage_index] == n_microbatches:
                    result.append(_Action(part.stage_index, REDUCE_GRAD))
    return result


def _transfer(action: _Action, rank_of: Callable[[int], int],
              num_stages: int) -> tuple[_Action, _Action] | None:
    """The send and the receive of an action's result, unless it stays where it is."""
    stage, kind, microbatch, _ = action
    if kind == FORWARD:
        target, send, receive = stage + 1, SEND_F, RECV_F
    elif kind in _INPUT_GRADIENT:
        target, send, receive = stage - 1, SEND_B, RECV_B
    else:
        return None
    if not 0 <= target < num_stages or rank_of(target) == rank_of(stage):
        return None
    return _Action(stage, send, microbatch), _Action(target, receive, microbatch)


def _is_ready(action: _Action | None, done: set[_Action], num_stages: int) -> bool:
    """Whether the rank that has `done` this has what the action needs."""
    if action is None:
        return True
    if action.sub_actions is not None:
        return all(_is_ready(part, done, num_stages) for part in action.sub_actions)
    stage, kind, microbatch, _ = action
    if kind == FORWARD and stage != 0:
        sources = [(stage, RECV_F), (stage - 1, FORWARD)]
    elif kind in _INPUT_GRADIENT and stage != num_stages - 1:
        sources = [(stage, RECV_B), (stage + 1, BACKWARD_INPUT), (stage + 1, FULL_BACKWARD)]
    else:
        return True
    return any(_Action(place, source, microbatch) in done for place, source in sources)


def _add_send_recv(compute_actions: dict[int, list[_Action | None]],
                   stage_to_rank: Callable[[int], int], num_stages: int) -> dict[int, Actions]:
    """Add what ranks send and receive, in an order in which none waits for ever.

    A result is sent right after it is there. Its receive is put at the end of what the other rank
    has by then: so two ranks have their transfers in the same order.
    """
    waiting = {rank: deque(compute_actions[rank]) for rank in sorted(compute_actions)}
    result: dict[int, Actions] = {rank: [] for rank in compute_actions}
    done: dict[int, set[_Action]] = {rank: set() for rank in compute_actions}

    def add(rank: int, action: _Action) -> None:
        result[rank].append(action)
        done[rank].update(parts_of(action))

    while any(waiting.values()):
        progress = False
        for rank, actions in waiting.items():
            if not actions or not _is_ready(actions[0], done[rank], num_stages):
                continue
            progress = True
            action = actions.popleft()
            if action is None:
                continue
            add(rank, action)
            for part in parts_of(action):
                if transfer := _transfer(part, stage_to_rank, num_stages):
                    send, receive = transfer
                    add(rank, send)
                    add(stage_to_rank(receive.stage_index), receive)
        if not progress:
            raise AssertionError("Malformed compute schedule, can't schedule sends/recvs")
    return result


def _validate_schedule(actions: Orders, pp_group_size: int, num_stages: int,
                       num_microbatches: int) -> dict[int, int]:
    """Check that each stage is computed by one rank, in an order that is possible, for every
    microbatch; the rank of each stage."""
    if len(actions) != pp_group_size:
        raise AssertionError("Schedule has incorrect number of ranks - expected "
                             f"{pp_group_size}, actual {len(actions)}")
    for rank in range(pp_group_size):
        if rank not in actions:
            raise AssertionError(f"Schedule is missing actions for rank {rank}")
    done: dict[int, dict] = {stage: {kind: set() for kind in (
        FORWARD, FULL_BACKWARD, BACKWARD_INPUT, BACKWARD_WEIGHT)} for stage in range(num_stages)}
    rank_of: dict[int, int] = {}
    for rank, order in actions.items():
        for step, action in enumerate(order):
            for part in () if action is None else parts_of(action):
                if part.computation_type not in done[part.stage_index]:
                    continue
                _check_order(part, done[part.stage_index], f"Rank {rank}, step {step}: ",
                             functools.partial(_format_pipeline_order, actions, step))
                owner = rank_of.setdefault(part.stage_index, rank)
                if owner != rank:
                    raise AssertionError(f"Rank {rank}, step {step}: Stage {part.stage_index} is "
                                         f"assigned to both rank {rank} and rank {owner}")
    _check_counts(done, num_microbatches)
    return rank_of


def _check_order(action: _Action, done: dict, place: str, table: Callable[[], str]) -> None:
    """An action of a stage, after what the stage has done of each kind."""
    stage, kind, microbatch, _ = action
    needs, title = {
        FORWARD: (None, ""),
        FULL_BACKWARD: (FORWARD, "Full Backward"),
        BACKWARD_INPUT: (FORWARD, "Backward Input"),
        BACKWARD_WEIGHT: (BACKWARD_INPUT, "Backward Weight")}[kind]
    if needs is not None and microbatch not in done[needs]:
        before = "Forward" if needs == FORWARD else "Backward Input"
        raise AssertionError(f"{place}Running {title} for stage {stage}, microbatch {microbatch} "
                             f"without first running {before}\n\nFull pipeline schedule:\n"
                             f"{table()}")
    done[kind].add(microbatch)


def _check_counts(done: dict[int, dict], expected: int) -> None:
    for stage, kinds in done.items():
        forwards = len(kinds[FORWARD])
        if forwards != expected:
            raise AssertionError(f"Got {forwards} {FORWARD} microbatches for stage {stage}, "
                                 f"expected {expected}")
        full, inputs, weights = (
            len(kinds[kind]) for kind in (FULL_BACKWARD, BACKWARD_INPUT, BACKWARD_WEIGHT))
        if inputs != weights:
            raise AssertionError(f"Invalid backward microbatches for stage {stage}: I and W must "
                                 f"have equal counts, but got I={inputs}, W={weights}")
        if full + inputs != expected:
            raise AssertionError(f"Invalid backward microbatches for stage {stage}: expected "
                                 f"{expected} total backwards, but got B={full}, I={inputs}, "
                                 f"W={weights}")


def _simulate_comms_compute(pipeline_order: Orders, stage_to_rank: Callable[[int], int],
                            num_stages: int) -> Orders:
    """Run the actions of all ranks in steps of equal length: where each waits, as None."""
    waiting = {rank: deque(action for action in pipeline_order[rank] if action is not None)
               for rank in sorted(pipeline_order)}
    result: Orders = {rank: [] for rank in waiting}
    done: dict[int, set[_Action]] = {rank: set() for rank in waiting}

    def ready(rank: int, action: _Action) -> bool:
        stage, kind, microbatch, _ = action
        if kind == FORWARD or kind in _INPUT_GRADIENT:
            return _is_ready(action, done[rank], num_stages)
        if kind == BACKWARD_WEIGHT:
            return True
        if kind == SEND_F:
            return _Action(stage, FORWARD, microbatch) in done[rank]
        if kind == SEND_B:
            return any(_Action(stage, source, microbatch) in done[rank]
                       for source in _INPUT_GRADIENT)
        if kind in (RECV_F, RECV_B):
            source, send = (stage - 1, SEND_F) if kind == RECV_F else (stage + 1, SEND_B)
            return _Action(source, send, microbatch) in done[stage_to_rank(source)]
        raise ValueError(f"Unsupported action type {action}")

    while any(waiting.values()):
        progress = False
        for rank, actions in waiting.items():
            if actions:
                action = actions[0] if ready(rank, actions[0]) else None
                result[rank].append(action)
                if action is not None:
                    done[rank].add(actions.popleft())
                    progress = True
        for rank, actions in waiting.items():       # what a later rank has sent in this step
            if actions and result[rank][-1] is None and ready(rank, actions[0]):
                result[rank][-1] = actions[0]
                done[rank].add(actions.popleft())
        if not progress:
            raise ValueError("Schedule is not progressing")
    return result


def _defer_recv_ops(actions: dict[int, Actions],
                    stage_to_rank: Callable[[int], int]) -> dict[int, Actions]:
    """Put each receive right before what needs it, so that its memory is held for less long.

    The lower rank of two does not move a receive past a send to the other one: with both behind
    their sends, two ranks whose sends wait for their receivers would wait for ever.
    """
    return {rank: _defer(rank, order, stage_to_rank) for rank, order in actions.items()}


def _defer(rank: int, actions: Actions, rank_of: Callable[[int], int]) -> Actions:
    pending: dict[_Action, int] = {}        # receives that are to come, and who sends to them
    result: Actions = []

    def receive(action: _Action) -> None:
        if action in pending:
            del pending[action]
            result.append(action)

    for action in actions:
        stage, kind = action.stage_index, action.computation_type
        if kind in (RECV_F, RECV_B):
            pending[action] = rank_of(stage - 1 if kind == RECV_F else stage + 1)
            continue
        if kind in (SEND_F, SEND_B):
            peer = rank_of(stage + 1 if kind == SEND_F else stage - 1)
            if rank < peer:
                for held in [held for held, sender in pending.items() if sender == peer]:
                    receive(held)
        for part in parts_of(action):
            if part.computation_type == FORWARD:
                receive(_Action(part.stage_index, RECV_F, part.microbatch_index))
            elif part.computation_type in _INPUT_GRADIENT:
                receive(_Action(part.stage_index, RECV_B, part.microbatch_index))
        result.append(action)
    return result + list(pending)
