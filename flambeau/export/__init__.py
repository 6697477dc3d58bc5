"""`export`: a module as a graph of ops that can be saved, inspected and run without its source.

>>> import flambeau as torch
>>> class Scaled(torch.nn.Module):
...     def forward(self, x):
...         return x.sin() * 2
>>> program = export(Scaled(), (torch.ones(3),))
>>> print(program.graph_module.code.strip())
def forward(self, x):
    sin = torch.ops.aten.sin.default(x);  x = None
    mul = torch.ops.aten.mul.Tensor(sin, 2);  sin = None
    return (mul,)

The program runs on the example inputs, and what it calls is written down. What it does with sizes
that are dynamic is found by running it on inputs of several sizes: numbers that differ between the
runs have to be sums, products or quotients of the sizes.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flambeau import nn
from flambeau.export.decomp_utils import CustomDecompTable, default_decompositions
from flambeau.export.dynamic_shapes import AdditionalInputs, Constraint, Dim, ShapesCollection, dims
from flambeau.export.exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from flambeau.export.graph_signature import ExportBackwardSignature, ExportGraphSignature
from flambeau.export.unflatten import FlatArgsAdapter, UnflattenedModule, unflatten

__all__ = ["AdditionalInputs", "Constraint", "CustomDecompTable", "Dim", "ExportBackwardSignature",
           "ExportGraphSignature", "ExportedProgram", "FlatArgsAdapter", "ModuleCallEntry",
           "ModuleCallSignature", "ShapesCollection", "UnflattenedModule",
           "default_decompositions", "dims", "draft_export", "export", "load",
           "register_dataclass", "save", "unflatten"]


def export(mod: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None, *,
           dynamic_shapes: Any = None, strict: bool = False,
           preserve_module_call_signature: tuple[str, ...] = (),
           prefer_deferred_runtime_asserts_over_guards: bool = False) -> ExportedProgram:
    """The program that `mod(*args, **kwargs)` is, as a graph.

    `dynamic_shapes` says which sizes may differ, by argument: `{"x": {0: Dim("batch")}}`; all
    others have to be those of the example whenever the program runs. Control flow that depends on
    values raises.

    >>> import flambeau as torch
    >>> program = export(torch.nn.Linear(4, 2), (torch.ones(3, 4),),
    ...                  dynamic_shapes={"input": {0: Dim("batch")}})
    >>> program.module()(torch.ones(5, 4)).shape
    torch.Size([5, 2])
    >>> program.range_constraints
    {s31: VR[0, int_oo]}
    """
    from flambeau import jit
    from flambeau._dynamo.exc import UserError
    from flambeau.export._trace.build import export_module
    if not isinstance(mod, nn.Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if isinstance(mod, jit.ScriptModule):
        raise ValueError("Exporting a ScriptModule is not supported. Maybe try converting your "
                         "ScriptModule to an ExportedProgram using `TS2EPConverter(mod, args, "
                         "kwargs).convert()` instead.")
    if not isinstance(args, tuple):
        raise UserError("Expecting `args` to be a tuple of example positional inputs, got "
                        f"{type(args)}")
    return export_module(mod, args, kwargs, dynamic_shapes, preserve_module_call_signature)


def draft_export(mod: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None, *,
                 dynamic_shapes: Any = None, preserve_module_call_signature: tuple[str, ...] = (),
                 strict: bool = False, prefer_deferred_runtime_asserts_over_guards: bool = False
                 ) -> ExportedProgram:
    """`export` that does without dynamic sizes where the program specialises them.

    >>> import flambeau as torch
    >>> program = draft_export(torch.nn.ReLU(), (torch.ones(3),))
    >>> program.module()(torch.tensor([-1., 0., 1.]))
    tensor([0., 0., 1.])
    """
    from flambeau._dynamo.exc import UserError
    options: Any = {"preserve_module_call_signature": preserve_module_call_signature}
    try:
        return export(mod, args, kwargs, dynamic_shapes=dynamic_shapes, **options)
    except UserError:
        if dynamic_shapes is None:
            raise
        return export(mod, args, kwargs, **options)


def save(ep: ExportedProgram, f: Any, *, extra_files: dict[str, Any] | None = None,
         opset_version: dict[str, int] | None = None, pickle_protocol: int = 2) -> None:
    """Write a program to a file, a `.pt2` archive as PyTorch has it."""
    from flambeau.export._archive import write
    if not isinstance(ep, ExportedProgram):
        raise TypeError("The 'ep' parameter must be an instance of 'ExportedProgram', got "
                        f"'{type(ep).__name__}' instead.")
    write(ep, f, extra_files or {})


def load(f: Any, *, extra_files: dict[str, Any] | None = None,
         expected_opset_version: dict[str, int] | None = None) -> ExportedProgram:
    """Read a program from a `.pt2` archive, flambeau's or PyTorch's. Nothing in it is executed.

    >>> import io
    >>> import flambeau as torch
    >>> file = io.BytesIO()
    >>> save(export(torch.nn.ReLU(), (torch.ones(2),)), file)
    >>> load(file).module()(torch.tensor([-1., 1.]))
    tensor([0., 1.])
    """
    from flambeau.export._archive import read
    return read(f, extra_files)


def register_dataclass(cls: type[Any], *, serialized_type_name: str | None = None) -> None:
    """Let instances of a dataclass be inputs and outputs of exported programs.

    >>> from dataclasses import dataclass
    >>> import flambeau as torch
    >>> @dataclass
    ... class Pair:
    ...     a: torch.Tensor
    ...     b: torch.Tensor
    >>> register_dataclass(Pair)
    >>> torch.utils._pytree.tree_leaves(Pair(1, 2))
    [1, 2]
    """
    import dataclasses

    from flambeau.utils import _pytree
    if not dataclasses.is_dataclass(cls):
        raise AssertionError("Only dataclasses can be registered with this function.")
    names = [f.name for f in dataclasses.fields(cls) if f.init]

    def flatten(value: Any) -> tuple[list[Any], Any]:
        present = [n for n in names if getattr(value, n) is not None]
        return [getattr(value, n) for n in present], [present, [n for n in names
                                                                if n not in present]]

    def unflatten(values: Any, context: Any) -> Any:
        return cls(**dict(zip(context[0], values)), **dict.fromkeys(context[1]))

    def flatten_with_keys(value: Any) -> tuple[list[Any], Any]:
        values, context = flatten(value)
        return [(_pytree.GetAttrKey(n), v) for n, v in zip(context[0], values)], context

    _pytree.register_pytree_node(cls, flatten, unflatten, flatten_with_keys_fn=flatten_with_keys)
