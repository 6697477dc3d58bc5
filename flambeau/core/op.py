"""What an op is: its declaration as data, and the table of all ops.

An op has a kernel (arrays in, arrays out) and a derivative; its *kind* gives the rest. Both are
declared together with PyTorch's schema, in `flambeau/dispatch`:

    mul = pointwise("mul.Tensor(Tensor self, Tensor other) -> Tensor", kernel=kernels.multiply,
                    d_self=lambda other: other, d_other=lambda self: self)

From the declaration an `Op` is made for each schema when it is first needed. A call binds what
users pass to a schema and makes it *canonical*: tensors first, dimensions counted from the front,
tuples for lists. From there on this package takes over, in the order of its chapters: `call` runs
the kernel, `recording` makes the node, `formulas` says what the node saves and how it gives
gradients, `engine` runs the nodes.
"""
from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from flambeau._support.source_locations import innermost_outside
from flambeau.core import dtypes, late_bound
from flambeau.core.devices import device
from flambeau.core.shapes import Size
from flambeau.core.tensor import Tensor
from flambeau.core.type_info import layout, memory_format

public: dict[str, dict[str, Any]] = {"torch": {}}  # the public functions of each namespace


# What stands between a statement that declares an op and the table.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_DECLARING = tuple([os.path.join(_PACKAGE, room, "") for room in ("core", "dispatch")])


class Table(dict[str, "Op"]):
    """Every op, by name. One that is declared by its schema is made when it is looked for, or when
    all are."""

    def __init__(self) -> None:
        super().__init__()
        self.declared: dict[str, Callable[[], Op]] = {}
        self.places: dict[str, tuple[str, int]] = {}    # file and line of each statement

    def declare(self, makers: dict[str, Callable[[], Op]], replaces: bool = False) -> None:
        """Enter the ops of a statement: by name what makes each, when it is needed.

        ValueError if there is an op of that name, unless the statement says that it `replaces` it.
        """
        frame = innermost_outside(sys._getframe(1), _DECLARING)
        file, line = place = frame.f_code.co_filename, frame.f_lineno
        known = [name for name in makers if name in self]
        if known and not replaces:
            before, at = self.places[known[0]]
            raise ValueError(f"{known[0]} is declared already, at {before}:{at}, and again at "
                             f"{file}:{line}; a statement that replaces an op says `replaces=True`")
        for name in known:
            del self[name]
        self.declared.update(makers)
        self.places.update(dict.fromkeys(makers, place))

    def make_all(self) -> None:
        for name in [*self.declared]:
            self[name]

    def __missing__(self, name: str) -> Op:
        if name not in self.declared:
            raise KeyError(name)
        self[name] = made = self.declared.pop(name)()
        return made

    def __contains__(self, name: Any) -> bool:
        return super().__contains__(name) or name in self.declared

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401

    def __iter__(self) -> Any:
        self.make_all()
        return super().__iter__()

    def __len__(self) -> int:
        return super().__len__() + len(self.declared)

    def keys(self) -> Any:
        self.make_all()
        return super().keys()

    def values(self) -> Any:
        self.make_all()
        return super().values()

    def items(self) -> Any:
        self.make_all()
        return super().items()

    def __delitem__(self, name: str) -> None:
        if self.declared.pop(name, None) is None:
            super().__delitem__(name)


table = Table()


class Op:
    """The declaration of one op, as data: tests, stubs, vmap and tracing read it.

    name        the public name; `node_name` is the class name of its nodes
    kernel      arrays (and other canonical arguments) to an array, or to several
    tensors     the names of its tensor arguments, which come first; `params` are the others
    rules       for each tensor argument its formula, a constant, or None; or one joint `vjp`
    kind        "pointwise", "linear", "multilinear", "general", "composite" or "creation"
    """

    composite = inplace = view = shares = unsized = floating = False
    core, dims, shape = "", (), None    # what says the shape of the result
    returns: Any = None                 # None: one result; else what makes the tuple of results
    variadic = False                    # is the first argument a sequence of tensors?
    differentiable: Any = True          # or a tuple of bools, one a result
    jvp_rule: Any = None
    batch_rule: Any = None
    vjp: Any = None
    nondiff: tuple[str, ...] = ()       # tensors that `vjp` gives no gradient of
    saved_as: dict[str, Any] = {}       # PyTorch's names of saved values: formulas, or constants
    functional: Any = None              # of an in-place op: what it computes
    function: Any = None                # the public callable
    call: Any = None                    # with canonical arguments, levels are asked first
    direct: Any = None                  # … and are not
    plan: Any                           # how a node saves what its formulas name, and for whom
    users: Any
    Backward: Any                       # the class of its nodes
    inplace_op: Any = None              # the op of its in-place form
    inplace_node = ""                   # what the nodes of its in-place form are called, if not so
    body: Any                           # of a composite
    parts: Any = None                   # the same as the kernel, made of other ops
    implicit = False                     # … which users see in its place?
    published: Any = None               # what users call
    schema: Any = None                  # PyTorch's, of an op that is declared by it
    key: str = ""                       # then: the overload's name in the table
    declaration: Any = None
    binder: Any = None                  # of a call before its overload is known
    refuses: Any = ()                   # PyTorch's name of the kernel, and kinds of dtypes that it
                                        # is not compiled for (kernels/refused.py)
    refused_as: dict[str, Any] = {}     # by kind of dtype what is said of those in its place
    conditions: Any = ()                # of pointwise ops: operands that are no part of the type
    inplace_check: Any = None           # … what raises for tensors that are not written to
    fixed = False                       # … has the result the type of the first operand?
    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...    # what else a declaration gives

    def __init__(self, name: str, kind: str, **attributes: Any):
        self.name, self.kind = name, kind
        self.tensors: tuple[str, ...] = ("self",)
        self.params: tuple[str, ...] = ()
        self.rules: dict[str, Any] = {}
        self.saved: tuple[str, ...] = ()
        self.__dict__.update(attributes)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def is_differentiable(self) -> bool:
        return self.vjp is not None or any(r is not None for r in self.rules.values())

    def plain(self, canonical: tuple[Any, ...]) -> Any:
        """The call that no level takes: on values, or on shapes if a tensor is on `meta`."""
        return late_bound.on_meta(self, canonical) if late_bound.has_meta(canonical) \
            else self.direct(*canonical)

    def inputs(self, canonical: tuple[Any, ...]) -> tuple[Any, ...]:
        """The tensor arguments among canonical ones (absent optional ones are None)."""
        return tuple(canonical[0]) if self.variadic else canonical[:len(self.tensors)]

    def with_inputs(self, canonical: tuple[Any, ...], inputs: Any) -> tuple[Any, ...]:
        """`canonical` with other tensor arguments."""
        if self.variadic:
            return (tuple(inputs), *canonical[1:])
        return (*inputs, *canonical[len(self.tensors):])


def module_of(namespace: str) -> str:
    """Where a function of a namespace seems to come from: flambeau, or torch under `as_torch`."""
    inside = {"torch": "", "_nn": "._C._nn", "fft": "._C._fft", "linalg": "._C._linalg",
              "special": "._C._special"}.get(namespace, f".{namespace}")
    return f"{sys.modules['flambeau'].__name__}{inside}"


def class_name(name: str) -> str:
    """`floor_divide` → `FloorDivideBackward0`."""
    return "".join(part.capitalize() for part in name.strip("_").split("_")) + "Backward0"


# types whose values never override a function, seen at the top of an argument list
passive: set[type] = {int, float, bool, complex, str, type(None), np.ndarray, slice, Tensor, Size,
                      dtypes.dtype, device, layout, memory_format}
is_passive = passive.issuperset
