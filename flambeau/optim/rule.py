"""Optimisers that treat one parameter at a time, and how their rule is applied to all of them.

An optimiser says what it keeps for a parameter (`init_state`) and what a step does to one
parameter (`update`), once and as mathematics. This module adds what is the same for all of them:
closures, `maximize`, weight decay, complex parameters, learning rates in tensors, steps that can
be differentiated, and one kernel call for all parameters where a kernel for the rule exists.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

import flambeau
from flambeau import Tensor
from flambeau._support.own_methods import define_in_subclasses
from flambeau._support.scopes import within
from flambeau._support.source_locations import mark_written
from flambeau.core.copy_on_write import own
from flambeau.core.modes import grad_mode, intercepts_ops
from flambeau.core.tensor import arrays_of, plain_types
from flambeau.kernels.network import optimizers as kernels
from flambeau.optim._support import (
    ParamsT,
    _device_dtype_check_for_fused,
    _get_capturable_supported_devices,
)
from flambeau.optim.optimizer import Optimizer
from flambeau.schema.errors import type_name

KERNEL_DTYPES = (flambeau.float32, flambeau.float64)

# Options that older saved states lack, and the value that means "as before".
_OFF = {
    "maximize": False, "foreach": None, "differentiable": False, "capturable": False,
    "fused": None, "amsgrad": False, "nesterov": False, "decoupled_weight_decay": False,
    "momentum": 0, "centered": False,
}


@cache
def _option_names(cls: type) -> frozenset[str]:
    """The names of what is given when an optimizer is made."""
    return frozenset(inspect.signature(cls).parameters)


@define_in_subclasses("step")
class RuleOptimizer(Optimizer):
    """An optimiser that is given by a rule for one parameter."""

    takes_sparse = False            # does `update` know sparse gradients?
    takes_complex = False           # does it know complex numbers? Else it sees pairs of reals
    refuses_complex = False         # … or are those refused?
    decoupled_weight_decay = False  # where the option of this name does not say it
    keeps: tuple[str, ...] = ()     # tensors that begin as zeros, in the order of the kernel's rule
    kernel_rule = ""                # the rule of `kernels.optimizers.update_arrays` for `update`
    kernel_dtypes: tuple = ()       # dtypes of which `step_by_kernel` takes all parameters at once
    numbers_depend_on_state = False  # do `kernel_numbers`?
    elementwise = True              # does a step treat each element of a parameter by itself?
    counts_in_tensors = True        # is the number of steps a tensor?
    first_step: Callable[[], Tensor] = staticmethod(lambda: new_step())
    lists_are_differentiable = False  # are steps that `foreach` asks for?
    # of steps that could be captured, parameter by parameter and of all at once: what has to be on
    # which devices
    capturable_state = ("params and state_steps",) * 2
    captured_on_xla = True, False
    sparse_hint = ""
    decays_reals = False            # is decay of complex numbers that of pairs of reals?
    read_first: tuple[str, ...] = ()    # options whose absence is told before that of others

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        super().__init__(params, defaults)
        if defaults.get("fused"):
            if defaults["differentiable"]:
                raise RuntimeError("`fused` does not support `differentiable`")
            if defaults["foreach"]:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        own: Any = type(self)
        known = _option_names(own)
        for group in self.param_groups:
            for name, value in _OFF.items():
                if name in self.defaults and (name != "differentiable" or name in known):
                    group.setdefault(name, value)
        for kept in self.state.values():
            if self.counts_in_tensors and isinstance(kept.get("step"), (int, float)):
                kept["step"] = new_step(float(kept["step"]))

    def keeps_state(self, group: dict[str, Any]) -> bool:
        """Does the rule, with these options, keep anything for a parameter?"""
        return True

    def init_state(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        """Put into `state` what the rule keeps for parameter `p`, before its first step."""
        if self.keeps:
            state["step"] = self.first_step()
            for name in self.keeps:
                state[name] = zeros(p)

    def update(self, p: Tensor, grad: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        """The rule: change `p` and `state` in place, given the gradient; the step is counted."""
        raise NotImplementedError

    def kernel_state(self, group: dict[str, Any]) -> Sequence[str]:
        """The names of the tensors that the kernel's rule keeps for a parameter, in its order."""
        return self.keeps

    def kernel_numbers(self, group: dict[str, Any], t: float,
                       state: dict[str, Any] | None) -> Sequence[float]:
        """The numbers of the kernel's rule in step number `t`, as `update` computes them; `state`
        is the parameter's where they depend on it, else None."""
        return ()

    def step_by_kernel(self, params: list[np.ndarray], grads: list[np.ndarray],
                       group: dict[str, Any], states: list[dict[str, Any]]) -> bool:
        """Update all the parameters in one kernel call, as `update` would one by one.

        `params` and `grads` are lists of arrays. Returns whether it did.
        """
        steps = arrays_of([state["step"] for state in states])
        counts = [step.item() + 1 for step in steps]
        if self.numbers_depend_on_state:
            numbers = [self.kernel_numbers(group, t, state)
                       for t, state in zip(counts, states, strict=True)]
        else:
            of_step = {t: self.kernel_numbers(group, t, None) for t in set(counts)}
            numbers = ([of_step[t] for t in counts] if len(of_step) > 1 else
                       list(of_step.values()))
        kept = [[state[name] for state in states] for name in self.kernel_state(group)]
        weight_decay, shrink = group.get("weight_decay", 0), 1
        if weight_decay and group.get("decoupled_weight_decay", self.decoupled_weight_decay):
            weight_decay, shrink = 0, 1 - group["lr"] * weight_decay
        if not kernels.update_arrays(self.kernel_rule, params, grads, list(map(arrays_of, kept)),
                                     steps, numbers, weight_decay, shrink, group["maximize"]):
            return False
        for tensors in kept:
            mark_written(tensors)
        mark_written([state["step"] for state in states])
        return True

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step with the gradients that the parameters hold.

        Args:
            closure: computes the loss anew, and its gradients, before the step.

        Returns:
            What `closure` returned, if it was given.
        """
        differentiable = self.defaults.get("differentiable", False)
        if type(differentiable) is not bool:
            raise TypeError("set_grad_enabled(): argument 'enabled' (position 1) must be bool, not "
                            f"{type_name(differentiable)}")
        return within(grad_mode, differentiable, self._take_step, closure, differentiable)

    def _take_step(self, closure: Callable[[], Any] | None, differentiable: bool) -> Any:
        loss = None if closure is None else within(grad_mode, True, closure)
        for group in self.param_groups:
            for name in self.read_first:
                group[name]
            params, grads = _with_grads(group["params"])
            if group.get("fused"):
                self._check_fused(params, grads)
            if (differentiable and params and group.get("foreach")
                    and not self.lists_are_differentiable):
                raise AssertionError("_foreach ops don't support autograd")
            options = group if differentiable else _with_plain_numbers(group)
            if self.kernel_dtypes and not differentiable:
                params = self._update_by_kernel(params, grads, options)
            if params:
                if self.elementwise and not differentiable:
                    params = self._update_pieces(params, options)
                for p in params:                # what all keep is there before the first changes
                    self._check_kind(p, p.grad)
                    self._state_of(p, options)
                for p in params:
                    self._update_one(p, p.grad, options, differentiable)
        return loss

    def _check_fused(self, params: list[Tensor], grads: list[Tensor]) -> None:
        """Raise RuntimeError where PyTorch has no fused kernel for a parameter."""
        for p, grad in zip(params, grads, strict=True):
            self._check_kind(p, grad)
            _device_dtype_check_for_fused(p)

    def _state_of(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if not self.keeps_state(group):
            return {}
        state = self.state[p]
        if not state:
            self.init_state(p, group, state)
        return state

    def _check_kind(self, p: Tensor, grad: Tensor) -> None:
        if self.refuses_complex and p.is_complex():
            raise RuntimeError(f"{self._rule_name()} does not support complex parameters")
        if grad.is_sparse and not self.takes_sparse:
            raise RuntimeError(
                f"{self._rule_name()} does not support sparse gradients{self.sparse_hint}")

    def _update_one(self, p: Tensor, grad: Tensor, group: dict[str, Any],
                    differentiable: bool) -> None:
        self._check_kind(p, grad)
        self._apply_rule(p, grad, group, self._state_of(p, group), differentiable)

    def _apply_rule(self, p: Tensor, grad: Tensor, group: dict[str, Any], state: dict[str, Any],
                    differentiable: bool) -> None:
        if group.get("capturable"):
            at_once = bool(group.get("foreach"))
            devices = _get_capturable_supported_devices(self.captured_on_xla[at_once])
            if p.device.type not in devices:
                raise AssertionError(f"If capturable=True, {self.capturable_state[at_once]} must "
                                     f"be on supported devices: {devices}.")
        if group.get("maximize"):
            grad = -grad
        if differentiable:   # what earlier steps saved for their backward must not be overwritten
            for name, value in state.items():
                if isinstance(value, Tensor):
                    state[name] = value.clone()
        in_reals = p.is_complex() and not (self.takes_complex or grad.is_sparse)
        if isinstance(state.get("step"), Tensor):
            state["step"].add_(1)
        if in_reals and self.decays_reals:
            p, grad, state = _as_reals(p, grad, state)
            in_reals = False
        grad = self._decay(p, grad, group)
        if in_reals:
            p, grad, state = _as_reals(p, grad, state)
        self.update(p, grad, group, state)

    def _decay(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> Tensor:
        """Weight decay: on the parameter itself if decoupled, else on the gradient."""
        weight_decay = group.get("weight_decay", 0)
        if isinstance(weight_decay, Tensor) or weight_decay != 0:
            if group.get("decoupled_weight_decay", self.decoupled_weight_decay):
                p.mul_(1 - group["lr"] * weight_decay)
            else:
                grad = add_scaled(grad, p, weight_decay)
        return grad

    def _update_by_kernel(self, params: list[Tensor], grads: list[Tensor],
                          group: dict[str, Any]) -> list[Tensor]:
        """Update what a kernel can take; returns the parameters that are left."""
        if group.get("capturable") or not params or intercepts_ops():   # which see ops, not kernels
            return params
        left: list[Tensor] = []
        dtypes = dict.fromkeys([p.dtype for p in params])
        if len(dtypes) > 1:     # checkpoints list what is kept in the order of the parameters
            for p in params:
                self._state_of(p, group)
        for dtype in dtypes:
            pairs = [(p, g) for p, g in zip(params, grads, strict=True) if p.dtype is dtype]
            if (self._real_type(dtype) not in self.kernel_dtypes
                    or any(g.dtype is not dtype for _, g in pairs)
                    or any(type(p) not in plain_types or type(g) not in plain_types for p,
                           g in pairs)
                    or not self._kernel_call([p for p, _ in pairs], [g for _, g in pairs], group)):
                left += [p for p, _ in pairs]
        return left

    def _real_type(self, dtype: Any) -> Any:
        """The type of what a kernel sees of a parameter: complex numbers are pairs of reals."""
        return dtype.to_real() if dtype.is_complex and not self.takes_complex else dtype

    def _kernel_call(self, params: list[Tensor], grads: list[Tensor],
                     group: dict[str, Any]) -> bool:
        states = [self._state_of(p, group) for p in params]
        for p in params:
            if not p._array.flags.writeable:
                own(p._array)
        if params[0].is_complex():
            reals = [_as_reals(*each) for each in zip(params, grads, states, strict=True)]
            params, grads, states = map(list, zip(*reals, strict=True))
        if not self.step_by_kernel(arrays_of(params), arrays_of(grads), group, states):
            return False
        mark_written(params)
        return True

    def _update_pieces(self, params: list[Tensor], group: dict[str, Any]) -> list[Tensor]:
        """Update what is made of other tensors, such as distributed ones, by these; returns the
        parameters that are left."""
        left, found = [], []
        for p in params:
            parts = None if type(p) in plain_types else _Pieces.of(p, self._state_of(p, group))
            if parts is None:
                left.append(p)
            else:
                found.append(parts)
        if found and not self._kernel_takes(found, group):
            for parts in found:
                self._apply_rule(parts.local, parts.grad, group, parts.state, False)
        for parts in found:
            parts.keep()
        return left

    def _kernel_takes(self, found: list[_Pieces], group: dict[str, Any]) -> bool:
        dtype = found[0].local.dtype
        if group.get("capturable") or intercepts_ops() or dtype not in self.kernel_dtypes or any(
                t.dtype is not dtype for parts in found for t in (parts.local, parts.grad)):
            return False
        params, grads = [parts.local for parts in found], [parts.grad for parts in found]
        if not self.step_by_kernel(arrays_of(params), arrays_of(grads), group,
                                   [parts.state for parts in found]):
            return False
        mark_written(params)
        return True

    def _rule_name(self) -> str:
        return type(self).__name__


class _Pieces:
    """What of a parameter, its gradient and its state is in this process."""

    def __init__(self, p: Any, own: dict[str, Any], state: dict[str, Any],
                 parts: Sequence[Any]) -> None:
        self.p, self.whole = p, state
        self.local, self.grad, *values = parts
        self.parts = dict(zip(own, values))
        self.state = {**state, **self.parts}

    @classmethod
    def of(cls, p: Tensor, state: dict[str, Any]) -> _Pieces | None:
        """None where it does not lie alike, or where the parameter is made of nothing else."""
        parts_of = getattr(type(p), "_elementwise_parts", None)
        if parts_of is None or p.grad.is_sparse:
            return None
        own = {name: value for name, value in state.items() if type(value) is type(p)}
        parts = parts_of(p, p.grad, *own.values())
        return None if parts is None else cls(p, own, state, parts)

    def keep(self) -> None:
        """Keep what the rule has put into the state."""
        for name, value in self.state.items():
            if value is self.parts.get(name, value) and name in self.whole:
                continue
            if isinstance(value, Tensor) and value.shape == self.local.shape:
                value = self.p._elementwise_whole(value)
            self.whole[name] = value


def apply_rule(rule: type[RuleOptimizer], params: list[Tensor], grads: list[Tensor],
               kept: dict[str, list[Any]], *, fused: bool | None = None,
               grad_scale: Tensor | None = None, found_inf: Tensor | None = None,
               differentiable: bool = False, **options: Any) -> None:
    """Take one step of the optimiser `rule` for parameters whose state the caller keeps.

    Args:
        rule: a :class:`RuleOptimizer`.
        params, grads: lists of tensors; the parameters are changed in place.
        kept: for each name of the rule's state, the list of its values; a list may be empty where
            the options have no use for it. Values change in place; a None is replaced by the first
            value.
        fused: as if in one kernel, which also divides by `grad_scale`, and skips the step where
            `found_inf` says so.
        differentiable: let gradients flow through the step.
        options: of the rule, all of them.
    """
    if rule.counts_in_tensors and not all(
            isinstance(step, Tensor) for step in kept.get("step", ())):
        raise RuntimeError("API has changed, `state_steps` argument must contain a list of "
                           "singleton tensors")
    if fused:
        if found_inf is not None and found_inf.item() == 1:
            return
        if grad_scale is not None:
            for grad in grads:
                grad.div_(grad_scale)
    elif grad_scale is not None or found_inf is not None:
        raise AssertionError("Expected grad_scale and found_inf to be None")
    optimizer = rule.__new__(rule)
    states = [{name: values[i] for name, values in kept.items()
               if values and values[i] is not None} for i in range(len(params))]
    optimizer.state = dict(zip(params, states, strict=True))
    left = list(zip(params, grads, strict=True))
    if not differentiable:
        options = _with_plain_numbers(options)
    if rule.kernel_dtypes and not differentiable and not flambeau.is_grad_enabled():
        slow = {id(p) for p in optimizer._update_by_kernel(params, grads, options)}
        left = [pair for pair in left if id(pair[0]) in slow]
    for p, grad in left:
        optimizer._update_one(p, grad, options, differentiable)
    for name, values in kept.items():
        if values:
            values[:] = [optimizer.state[p].get(name) for p in params]


def _with_grads(params: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """The parameters that have a gradient, and their gradients."""
    grads = [p.grad for p in params]
    if any(g is None for g in grads):
        params = [p for p, g in zip(params, grads, strict=True) if g is not None]
        grads = [g for g in grads if g is not None]
    return params, grads


def _as_reals(p: Tensor, grad: Tensor, state: dict[str, Any]) -> tuple[Any, Any, Any]:
    """A complex parameter, its gradient and its state as pairs of reals."""
    return flambeau.view_as_real(p), flambeau.view_as_real(grad), {
        name: flambeau.view_as_real(value) if _is_complex(value) else value
        for name, value in state.items()}


def _is_complex(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_complex()


def _has_plain_numbers(group: dict[str, Any]) -> bool:
    """Are the options numbers, none of them a tensor?"""
    if isinstance(group["lr"], Tensor) or isinstance(group.get("weight_decay"), Tensor):
        return False
    return not any(isinstance(beta, Tensor) for beta in group.get("betas", ()))


def _with_plain_numbers(group: dict[str, Any]) -> dict[str, Any]:
    """The group with every option that is a tensor replaced by its number."""
    if _has_plain_numbers(group):
        return group
    options = {name: value.item() if isinstance(value, Tensor) else value
               for name, value in group.items()}
    if "betas" in group:
        options["betas"] = tuple(b.item() if isinstance(b, Tensor) else b for b in group["betas"])
    return options


def new_step(value: float = 0.0) -> Tensor:
    """A step counter: a 0-d tensor in single precision, or in double if that is the default."""
    double = flambeau.get_default_dtype() is flambeau.float64
    return flambeau.tensor(value, dtype=flambeau.float64 if double else flambeau.float32)


def zero_step() -> Tensor:
    """A step counter at zero, as optimisers that have PyTorch fill it make it."""
    double = flambeau.get_default_dtype() is flambeau.float64
    return flambeau.zeros((), dtype=flambeau.float64 if double else flambeau.float32)


def add_scaled(x: Tensor, y: Tensor, number: Any, inplace: bool = False) -> Tensor:
    """`x + number * y`; a number in a tensor may need a gradient."""
    if isinstance(number, Tensor):
        return x.add_(number * y) if inplace else x + number * y
    return x.add_(y, alpha=number) if inplace else x.add(y, alpha=number)


def add_square(mean: Tensor, x: Tensor, number: Any) -> Tensor:
    """Add `number * x * x` in place; a number in a tensor may need a gradient."""
    if isinstance(number, Tensor):
        return mean.add_(number * (x * x))
    return mean.addcmul_(x, x, value=number)


def add_quotient_(p: Tensor, above: Tensor, below: Tensor, number: Any) -> Tensor:
    """Add `number * above / below` in place; a number in a tensor may need a gradient."""
    if isinstance(number, Tensor):
        return p.add_(number * (above / below))
    return p.addcdiv_(above, below, value=number)


def zeros(p: Tensor) -> Tensor:
    """Zeros like the parameter, in its memory format."""
    return flambeau.zeros_like(p, memory_format=flambeau.preserve_format)


def check_lr(lr: float | Tensor) -> None:
    """Is the learning rate one number, and not negative?"""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    check("learning rate", lr)


def check(name: str, value: float | Tensor) -> None:
    """Raise ValueError unless `value` is at least 0."""
    check_least(f"Invalid {name}: ", value)


def check_least(said: str, value: float | Tensor, least: float = 0.0) -> None:
    """Raise ValueError, with what is `said` and the value, unless that is at least `least`."""
    if not least <= value:          # in PyTorch's order, which Python's errors show
        raise ValueError(f"{said}{value}")


def check_betas(betas: Sequence[float | Tensor]) -> None:
    """Raise ValueError unless both decay rates lie in [0, 1)."""
    for i in (0, 1):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")
