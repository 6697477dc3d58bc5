"""Which modules and parameters a wrapper takes, and their names, values and norms."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.distributed.fsdp._common_utils import _get_param_to_fqns


def _ignored(modules: Any, states: Any) -> tuple[set[nn.Module], set[nn.Parameter]]:
    """The modules and parameters that are left as they are."""
    given = list(modules or ()) + list(states or ())
    found = {inner for m in given if isinstance(m, nn.Module) for inner in m.modules()}
    params: set[Any] = {p for p in given if isinstance(p, Tensor)}
    for one in given:
        if not isinstance(one, (nn.Module, Tensor)):
            raise TypeError("ignored_modules and ignored_states expect modules or parameters, "
                            f"got {type(one)}")
    return found, params | {p for m in found for p in m.parameters(recurse=False)}


def _materialize(module: nn.Module, param_init_fn: Callable[[nn.Module], None],
                 ignored: set[nn.Module]) -> None:
    """Give modules on `meta` values."""
    for inner in list(module.modules()):
        if inner not in ignored and any(
                t.is_meta for t in (*inner.parameters(recurse=False),
                                    *inner.buffers(recurse=False))):
            param_init_fn(inner)


def _norm(gradients: list[Tensor], norm_type: float) -> Tensor:
    if not gradients:
        return flambeau.zeros((), dtype=flambeau.float32)
    norms = [flambeau.linalg.vector_norm(g.detach().float(), norm_type) for g in gradients]
    return flambeau.linalg.vector_norm(flambeau.stack(norms), norm_type)


def _get_grad_norm(params: Iterable[nn.Parameter], norm_type: float, zero: Tensor,
                   device: flambeau.device) -> Tensor:
    """The norm of the gradients of parameters, as if they were one vector."""
    return _norm([p.grad for p in params if p.grad is not None], norm_type)


def _get_param_to_fqn(model: nn.Module) -> dict[nn.Parameter, str]:
    """The name of each parameter, without what wrappers add."""
    return {param: fqns[0] for param, fqns in _get_param_to_fqns(model).items()}


def _get_fqn_to_param(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameter of each name."""
    return {fqn: param for param, fqn in _get_param_to_fqn(model).items()}
