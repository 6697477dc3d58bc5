"""Names for annotations."""
import os
from collections.abc import Sequence
from typing import IO

from flambeau import Size, SymBool, SymFloat, SymInt, Tensor, device, dtype, layout, qscheme
from flambeau.autograd.graph import GradientEdge
from flambeau.dispatch.aten.keys import DispatchKey
from flambeau.storage import UntypedStorage as Storage

__all__ = ["Device", "FileLike", "Number", "Storage"]

Number = int | float | bool
Device = device | str | int | None
FileLike = str | os.PathLike[str] | IO[bytes]
IntLikeType = int | SymInt
FloatLikeType = float | SymFloat
BoolLikeType = bool | SymBool
py_sym_types = (SymInt, SymFloat, SymBool)
PySymType = SymInt | SymFloat | SymBool

# The builtin types and those of PyTorch where a class has a method of the same name.
_bool, _bytes, _complex, _float, _int, _str = bool, bytes, complex, float, int, str
_device, _dtype, _layout, _qscheme = device, dtype, layout, qscheme
_dispatchkey = str | DispatchKey
_size = Size | list[int] | tuple[int, ...]
_symsize = Size | Sequence[int | SymInt]
_Number = (int, float, bool)
_TensorOrTensors = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors = Tensor | Sequence[Tensor | None]
_TensorOrTensorsOrGradEdge = Tensor | Sequence[Tensor] | GradientEdge | Sequence[GradientEdge]
