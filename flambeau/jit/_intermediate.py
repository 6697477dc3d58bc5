"""Functions of TorchScript's intermediate representation, which there is none of here."""
from __future__ import annotations

from typing import Any

from flambeau._support.c_functions import matched

_MODULE = ("(arg0: torch._C.CompilationUnit, arg1: str, arg2: object, arg3: dict, arg4: bool) -> "
           "torch._C.ScriptModule")


class _Absent:
    """What no value is an instance of."""


_NONE = {"torch._C.CompilationUnit": _Absent, "torch._C._jit_tree_views.Decl": _Absent, "str": str,
         "bool": bool}


def _absent(name: str, signature: str) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{name}: TorchScript's intermediate representation is not there")
    call.__name__ = call.__qualname__ = name
    call.__doc__ = "NotImplementedError: there is no intermediate representation of TorchScript."
    return matched(signature, _NONE)(call)


import_ir_module = _absent("import_ir_module", _MODULE)
import_ir_module_from_buffer = _absent("import_ir_module_from_buffer", _MODULE)
merge_type_from_type_comment = _absent(
    "merge_type_from_type_comment", "(arg0: torch._C._jit_tree_views.Decl, arg1: torch._C."
    "_jit_tree_views.Decl, arg2: bool) -> torch._C._jit_tree_views.Decl")
parse_ir = _absent("parse_ir", "(input: str, parse_tensor_constants: bool = False) -> "
                   "torch::jit::Graph")
parse_type_comment = _absent("parse_type_comment", "(arg0: str) -> torch._C._jit_tree_views.Decl")

__all__ = ["import_ir_module", "import_ir_module_from_buffer", "merge_type_from_type_comment",
           "parse_ir", "parse_type_comment"]
