"""How views as copies, `*_copy`, are declared: from the views' own declarations."""
from __future__ import annotations

import re
from typing import Any

from flambeau.core.op import class_name
from flambeau.core.type_info import contiguous_format
from flambeau.dispatch.declaration import op
from flambeau.kernels.moving import views
from flambeau.ops.out_types import OUT_TYPE
from flambeau.ops.view.conversion import clone


def copying_kernel(kernel: Any) -> Any:
    """A kernel that copies the views that another gives."""
    def copy(*args: Any) -> Any:
        found = kernel(*args)
        return [views.contiguous(part) for part in found] if type(found) is list \
            else views.contiguous(found)
    return copy


def _batched_copy(rule: Any) -> Any:
    def batched(*args: Any) -> Any:
        result, dim = rule(*args)
        return clone(result, memory_format=contiguous_format), dim
    return rule and batched


_ALIAS = re.compile(r"Tensor\(a( -> \*)?\)")


def copies(view: Any, **different: Any) -> Any:
    """Declare the op of copies of what a view shows: the same arguments and formulas, but for what
    is `different`."""
    of = view.twin.declaration
    texts = [_ALIAS.sub("Tensor", text).replace(of.name, f"{of.name}_copy", 1)
             for text in of.texts]
    fields = of.given()
    fields |= {"kernel": copying_kernel(of.kernel), "node": f"{class_name(of.name)[:-1]}{{}}_copy",
               "method": False, "function": True, "aliases": (), "namespace": "", "jvp": None,
               "batch": _batched_copy(of.batch),
               "doc": f"A copy of what `{of.name}` shows.", **different}
    rules = {f"d_{name}": rule for name, rule in fields.pop("rules").items()}
    for name in ("texts", "published"):
        fields.pop(name)
    return op(*texts, **fields, **rules)


def exact_copies(view: Any, **different: Any) -> Any:
    """Declare copies where `out=` must have the type of the result."""
    of = view.twin.declaration
    return copies(view, **{"out_type": OUT_TYPE, "out_reported_as": f"aten::{of.name}_copy",
                           **different})
