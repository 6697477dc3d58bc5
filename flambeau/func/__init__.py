"""Functions of functions: gradients, Jacobians and batching, free to nest in one another."""
from flambeau._support.own_methods import belong
from flambeau.func.batch import vmap
from flambeau.func.derivatives import (
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
)
from flambeau.func.einops import rearrange
from flambeau.func.modules import (
    functional_call,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from flambeau.func.rewrite import functionalize

belong(__name__, functional_call, functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp,
       linearize, rearrange, replace_all_batch_norm_modules_, stack_module_state, vjp, vmap)


__all__ = ["debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian",
           "jacfwd", "jacrev", "jvp", "linearize", "rearrange", "replace_all_batch_norm_modules_",
           "stack_module_state", "vjp", "vmap"]


def debug_unwrap(tensor, *, recurse=True):
    """What a tensor inside `vmap` wraps: the whole tensor with its slices."""
    from flambeau.transforms.batching import BatchedTensor
    while type(tensor) is BatchedTensor:
        tensor = tensor._value
        if not recurse:
            break
    return tensor
