"""Keys and values of all processes, for `flex_attention` on a part of the queries."""
from __future__ import annotations

from typing import Any

from flambeau import Tensor
from flambeau.distributed import _functional_collectives as funcol
from flambeau.distributed._c10d.world import resolve_name as _resolve_process_group
from flambeau.library import custom_op


@custom_op("cplib::flex_cp_allgather", mutates_args=())
def flex_cp_allgather(k: Tensor, v: Tensor, seq_dim: int, pg_name: str) -> tuple[Tensor, Tensor]:
    """The whole of `k` and `v`; backward, this process's part of the sum of gradients."""
    group = _resolve_process_group(pg_name)
    return (funcol.wait_tensor(funcol.all_gather_tensor(k.contiguous(), seq_dim, group)),
            funcol.wait_tensor(funcol.all_gather_tensor(v.contiguous(), seq_dim, group)))


@flex_cp_allgather.register_fake
def _(k: Tensor, v: Tensor, seq_dim: int, pg_name: str) -> tuple[Tensor, Tensor]:
    size = _resolve_process_group(pg_name).size()

    def whole(part: Tensor) -> Tensor:
        shape = list(part.shape)
        shape[seq_dim] *= size
        return part.new_empty(shape)
    return whole(k), whole(v)


def _flex_cp_setup_context(ctx: Any, inputs: Any, output: Any) -> None:
    _, _, ctx.seq_dim, ctx.pg_name = inputs


def _flex_cp_allgather_backward(ctx: Any, grad_full_k: Tensor, grad_full_v: Tensor) -> Any:
    group = _resolve_process_group(ctx.pg_name)
    return (*[funcol.wait_tensor(funcol.reduce_scatter_tensor(g.contiguous(), "sum", ctx.seq_dim,
                                                              group))
              for g in (grad_full_k, grad_full_v)], None, None)


flex_cp_allgather.register_autograd(_flex_cp_allgather_backward,
                                    setup_context=_flex_cp_setup_context)
