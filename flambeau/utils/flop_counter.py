"""`FlopCounterMode`: how many floating-point operations products and convolutions take.

>>> model = flambeau.nn.Linear(4, 5)
>>> with FlopCounterMode(display=False) as counter:
...     model(flambeau.ones(3, 4)).sum().backward()
>>> counter.get_total_flops()               # the product, and that for the weight's gradient
240
"""
from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import flambeau
from flambeau.core.autograd.recording import node_watchers
from flambeau.nn.modules import _hooks
from flambeau.utils import _pytree
from flambeau.utils._python_dispatch import OpOverloadPacket, TorchDispatchMode, aten

flop_registry: dict[Any, Callable[..., int]] = {}       # op packets, to functions of its arguments


def _of_shapes(formula: Callable[..., int]) -> Callable[..., int]:
    """A formula of shapes as one of tensors."""
    def counted(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out = _pytree.tree_map(
            lambda v: v.shape if isinstance(v, flambeau.Tensor) else v, (args, kwargs, out_val))
        return formula(*args, out_shape=out, **kwargs)
    return counted


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Any], Any]:
    """A decorator: count the ops `targets`, such as `aten.mm`, by a function of the shapes of their
    arguments and of `out_shape`; with `get_raw`, of the arguments themselves and of `out_val`.

    >>> @register_flop_formula(flambeau.ops.aten.sin)
    ... def count(shape, out_shape=None, **kwargs):
    ...     return shape.numel()
    >>> with FlopCounterMode(display=False) as counter:
    ...     _ = flambeau.ones(3).sin()
    >>> counter.get_total_flops()
    3
    >>> del flop_registry[flambeau.ops.aten.sin]
    """
    def register(formula: Callable[..., int]) -> Callable[..., int]:
        for target in targets if isinstance(targets, list | tuple) else (targets,):
            if not isinstance(target, OpOverloadPacket):
                raise ValueError("register_flop_formula(targets): expected each target to be "
                                 f"OpOverloadPacket (i.e. torch.ops.mylib.foo), got {target} which "
                                 f"is of type {type(target)}")
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = formula if get_raw else _of_shapes(formula)
        return formula
    return register


# ---- formulas -----------------------------------------------------------------------------------

@register_flop_formula(aten.mm)
def _mm(a: Any, b: Any, *args: Any, **kwargs: Any) -> int:
    return 2 * a[0] * a[1] * b[1]


@register_flop_formula(aten.bmm)
def _bmm(a: Any, b: Any, *args: Any, **kwargs: Any) -> int:
    return a[0] * _mm(a[1:], b[1:])


@register_flop_formula(aten.addmm)
def _addmm(added: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> int:
    return _mm(a, b)


@register_flop_formula(aten.baddbmm)
def _baddbmm(added: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> int:
    return _bmm(a, b)


@register_flop_formula(aten.linear)
def _linear(x: Any, weight: Any, *args: Any, **kwargs: Any) -> int:
    return 2 * math.prod(x) * math.prod(weight[:-1])


def _convolved(places: Any, weight: Any) -> int:
    batch, _, *spatial = places
    return 2 * batch * math.prod(spatial) * math.prod(weight)


@register_flop_formula(aten.convolution)
def _convolution(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
                 transposed: bool, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    return _convolved(x if transposed else out_shape, weight)


@register_flop_formula(aten.convolution_backward)
def _convolution_backward(grad: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any,
                          dilation: Any, transposed: bool, output_padding: Any, groups: int,
                          mask: Any, *args: Any, **kwargs: Any) -> int:
    return (bool(mask[0]) + bool(mask[1])) * _convolved(x if transposed else grad, weight)


# ---- the mode -----------------------------------------------------------------------------------

class FlopCounterMode(TorchDispatchMode):
    """While entered, counts operations, for the whole program and for each module in it.

    `depth` is how deep modules are shown in the table, which is printed at the end unless `display`
    is False; `custom_mapping` gives formulas for further ops. The backward pass counts for the
    modules whose forward pass made it.
    """

    def __init__(self, mods: Any = None, depth: int | None = 2, display: bool = True,
                 custom_mapping: dict[Any, Any] | None = None):
        super().__init__()
        self.depth, self.display = depth, display
        self.flop_registry = {**flop_registry, **{
            target: formula if getattr(formula, "_get_raw", False) else _of_shapes(formula)
            for target, formula in (custom_mapping or {}).items()}}
        self.flop_counts: Any = defaultdict(lambda: defaultdict(int))
        self._names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._running: tuple[str, ...] = ("Global",)

    def get_total_flops(self) -> int:
        """The number of operations so far."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """The numbers of operations by module and op."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text: modules, their share, and the ops in them."""
        depth = depth or self.depth or 999999
        total = self.get_total_flops()
        step = min(int(math.log10(total)) // 3, 5) if total else 0
        rows = [("Module", "FLOP", "% Total")]

        def add(label: str, count: int) -> None:
            share = f"{count / total:.2%}" if total else "0%"
            rows.append((label, f"{count / 1000 ** step:.3f}{['', 'K', 'M', 'B', 'T', 'P'][step]}",
                         share))

        for name in sorted(self.flop_counts, key=lambda name: (name != "Global", name)):
            level = 0 if name == "Global" else name.count(".") + 1
            if level <= depth:
                counts = self.flop_counts[name]
                add(" " * level + name, sum(counts.values()))
                for packet, count in counts.items():
                    add(" " * (level + 1) + f"- {packet}", count)
        widths = [max(len(head) + 2, *map(len, column))
                  for head, *column in ([*c, ""] for c in zip(*rows))]
        lines = [rows[0], tuple("-" * width for width in widths), *rows[1:]]
        return "\n".join("  ".join(
            (cell.ljust if i == 0 else cell.rjust)(width)
            for i, (cell, width) in enumerate(zip(line, widths))).rstrip() for line in lines)

    def _has_left(self) -> None:
        if self.display:
            print(self.get_table(self.depth))

    def _changes(self) -> Any:
        self.flop_counts.clear()
        self._running = ("Global",)
        key = f"flops {id(self)}"
        return (*super()._changes(), (_hooks._global_forward_pre_hooks, key, self._begin),
                (_hooks._global_forward_hooks, key, self._end), (node_watchers, self._watch))

    def _begin(self, module: Any, args: Any) -> None:
        name = self._names.setdefault(module, type(module).__name__)
        for child_name, child in module.named_children():
            self._names.setdefault(child, f"{name}.{child_name}")
        self._running = (*self._running, name)

    def _end(self, module: Any, args: Any, output: Any) -> None:
        self._running = self._running[:-1]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        packet = func.overloadpacket
        formula = self.flop_registry.get(packet)
        if formula is not None:
            count = formula(*args, **(kwargs or {}), out_val=result)
            for name in dict.fromkeys(self._running):
                self.flop_counts[name][packet] += count
        return result

    def _watch(self, node: Any) -> None:
        """The derivative of an op counts for the modules in which the op ran."""
        running = self._running

        def resume(grads: Any) -> None:
            self._running = running
        node.register_prehook(resume)


__all__ = ["FlopCounterMode", "register_flop_formula"]
