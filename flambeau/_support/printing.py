"""How tensors are written as text, with PyTorch's layout.

``format_array`` lays out the numbers of a NumPy array; ``tensor_repr`` adds what else a
tensor shows (size, dtype, device, grad_fn). Both follow ``set_printoptions``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

import flambeau
from flambeau.core.modes import levels
from flambeau.core.tensor import arrays_of

if TYPE_CHECKING:
    from flambeau import Tensor

__all__ = ["format_array", "get_printoptions", "printoptions", "set_printoptions", "tensor_repr"]


@dataclasses.dataclass
class _Options:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_options = _Options()

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80}}


def set_printoptions(precision: int | None = None, threshold: float | None = None,
                     edgeitems: int | None = None, linewidth: int | None = None,
                     profile: str | None = None, sci_mode: bool | None = None) -> None:
    """Choose how tensors are printed.

    Args:
        precision: digits after the decimal point (4).
        threshold: tensors with more elements than this are summarised (1000).
        edgeitems: items shown at both ends of a summarised dimension (3).
        linewidth: columns of a line (80).
        profile: a set of the four above: ``"default"``, ``"short"`` or ``"full"``.
        sci_mode: True for scientific notation, False for fixed, None (also when left out)
            to choose for each tensor.

    Example::

        >>> import flambeau as torch
        >>> torch.set_printoptions(precision=2)
        >>> torch.tensor([1.12345])
        tensor([1.12])
        >>> torch.set_printoptions(profile="default")
    """
    if profile is not None and profile in _PROFILES:
        for name, value in _PROFILES[profile].items():
            setattr(_options, name, value)
    if precision is not None:
        _options.precision = precision
    if threshold is not None:
        _options.threshold = threshold
    if edgeitems is not None:
        _options.edgeitems = edgeitems
    if linewidth is not None:
        _options.linewidth = linewidth
    _options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options in force, as a dictionary that ``set_printoptions`` takes."""
    return dataclasses.asdict(_options)


@contextlib.contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """``set_printoptions`` for the length of a ``with`` block."""
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


# Numbers ------------------------------------------------------------------------------------


def real_notation(values):
    """How Python floats are written together: a function, the width, and whether as whole numbers
    and as powers of ten.

    Zeros, infinities and NaNs take part in neither the choice of notation nor the width.
    """
    deciding = [value for value in values if value and math.isfinite(value)]
    whole = all(value.is_integer() for value in deciding)
    scientific = _options.sci_mode if deciding else False
    if scientific is None:
        sizes = [abs(value) for value in deciding]
        largest, smallest = max(sizes), min(sizes)
        scientific = (
            largest / smallest > 1000.0 or largest > 1.0e8 or (not whole and smallest < 1.0e-4))
    if scientific:
        write = f"%.{_options.precision}e".__mod__
    elif whole:
        write = _whole_text
    else:
        write = f"%.{_options.precision}f".__mod__
    width = max((len(write(value)) for value in deciding), default=1)
    return write, width, whole, scientific


def _real_texts(values):
    """Texts of Python floats, all right-aligned to one width, and that width."""
    write, width, _, _ = real_notation(values)
    return [write(value).rjust(width) for value in values], width


def _whole_text(value):
    return f"{value:.0f}." if math.isfinite(value) else str(value)


def _complex_texts(values):
    reals, width = _real_texts([value.real for value in values])
    imags, imag_width = _real_texts([value.imag for value in values])
    texts = []
    for real, imag in zip(reals, imags, strict=True):
        imag = imag.lstrip()
        texts.append(f"{real}{imag}j" if imag[0] == "-" else f"{real}+{imag}j")
    return texts, width + imag_width + 1


def _texts(array):
    """The elements of an array as a flat list of texts, and the width of one."""
    values = array.ravel().tolist()
    kind = array.dtype.kind
    if kind == "f":
        return _real_texts(values)
    if kind in "cW":
        return _complex_texts(values)
    texts = [str(value) for value in values]
    width = max(map(len, texts), default=1)
    return [text.rjust(width) for text in texts], width


# Layout -------------------------------------------------------------------------------------


def _edges(array, edgeitems):
    """The corners of an array: the first and last items of every dimension."""
    for axis, size in enumerate(array.shape):
        if size > 2 * edgeitems:
            shown = [*range(edgeitems), *range(size - edgeitems, size)]
            array = array.take(shown, axis)
    return array


def _row(texts, cut, indent, width):
    """One innermost dimension, broken into lines; ``cut`` puts dots in its middle."""
    if cut:
        half = len(texts) // 2
        texts = [*texts[:half], " ...", *texts[half:]]
    per_line = max(1, (_options.linewidth - indent) // (width + 2))
    lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _block(texts, shape, cuts, indent, width):
    """All dimensions; ``texts`` holds the shown elements in row-major order."""
    if len(shape) == 1:
        return _row(texts, cuts[0], indent, width)
    step = len(texts) // shape[0] if shape[0] else 0
    blocks = [_block(texts[i * step : (i + 1) * step], shape[1:], cuts[1:], indent + 1, width)
              for i in range(shape[0])]
    if cuts[0]:
        blocks.insert(len(blocks) // 2, "...")
    return "[" + ("," + "\n" * (len(shape) - 1) + " " * (indent + 1)).join(blocks) + "]"


def format_array(array: np.ndarray, indent: int = 0) -> str:
    """The numbers of an array, as PyTorch prints them.

    ``indent`` is the column where the text will start; later lines are indented to match.

    Example::

        >>> import numpy as np
        >>> print(format_array(np.array([[1.0, 2.5], [-3.0, 0.0]])))
        [[ 1.0000,  2.5000],
         [-3.0000,  0.0000]]
    """
    if array.size == 0:
        return "[]"
    if array.dtype.kind == "V":  # the small floats of ml_dtypes
        array = array.astype(np.float32)
    shape = array.shape
    cuts = (False,) * len(shape)
    if array.size > _options.threshold:
        edgeitems = max(_options.edgeitems, 0)
        cuts = tuple(size > 2 * edgeitems for size in shape)
        array = _edges(array, edgeitems)
        if array.size == 0:
            return "[...]"
    texts, width = _texts(array)
    if not shape:
        return texts[0]
    return _block(texts, array.shape, cuts, indent, width)


# Tensors ------------------------------------------------------------------------------------


def _unmarked_dtypes(without_numbers):
    """The dtypes that the numbers themselves show, so that ``dtype=`` is left out."""
    default = flambeau.get_default_dtype()
    if without_numbers:
        return (default,)
    wide = default is flambeau.float64
    complex_default = flambeau.complex128 if wide else flambeau.complex64
    return (default, complex_default, flambeau.int64, flambeau.bool)


_SPARSE_PARTS = {
    "torch.sparse_coo": ("_indices", "_values"),
    "torch.sparse_csr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_csc": ("ccol_indices", "row_indices", "values"),
    "torch.sparse_bsr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_bsc": ("ccol_indices", "row_indices", "values"),
}


def _sparse_contents(tensor, indent):
    lines = []
    for part in _SPARSE_PARTS[str(tensor.layout)]:
        start = part.lstrip("_") + "=tensor("
        values = getattr(tensor, part)()
        meta = values.device.type == "meta"
        text = "..." if meta else format_array(arrays_of([values])[0], indent + len(start))
        if meta or values.numel() == 0:
            text += f", size={tuple(values.shape)}"
        lines.append(f"{start}{text})")
    return (",\n" + " " * indent).join(lines)


def _scheme_suffix(tensor):
    scheme = [f"quantization_scheme={tensor.qscheme()}"]
    if tensor.qscheme() is flambeau.per_tensor_affine:
        return [*scheme, f"scale={tensor.q_scale()}", f"zero_point={tensor.q_zero_point()}"]
    return [*scheme, f"scale={tensor.q_per_channel_scales()}",
            f"zero_point={tensor.q_per_channel_zero_points()}",
            f"axis={tensor.q_per_channel_axis()}"]


def _grad_suffix(tensor):
    try:
        node = tensor.grad_fn
    except RuntimeError:            # a view whose base was written to where it should not have been
        return ["grad_fn=<Invalid>"]
    if node is not None:
        return [f"grad_fn=<{type(node).__name__}>"]
    return ["requires_grad=True"] if tensor.requires_grad else []


def _tangent_suffix(tensor):
    """The tangent at the innermost level of forward mode."""
    active = levels.get()
    if active:
        from flambeau.transforms.forward import ForwardLevel

        for level in reversed(active):
            tangent = level.tangent(tensor) if isinstance(level, ForwardLevel) else None
            if tangent is not None:
                return [f"tangent={tangent}"]
    return []


def _join(start, suffixes, indent, newline=False):
    """``start`` and the suffixes, wrapped at the line width and closed with a bracket."""
    parts = [start]
    column = len(start) - start.rfind("\n") + 1
    if newline:
        parts.append(",\n" + " " * indent + suffixes[0])
        column, suffixes = indent + len(suffixes[0]), suffixes[1:]
    for suffix in suffixes:
        if column + len(suffix) + 2 > _options.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            column = indent + len(suffix)
        else:
            parts.append(", " + suffix)
            column += len(suffix) + 2
    return "".join(parts) + ")"


def tensor_repr(tensor: Tensor, *, tensor_contents: str | None = None) -> str:
    """``repr`` of a tensor; ``tensor_contents`` replaces the text of its numbers.

    Example::

        >>> import flambeau as torch
        >>> torch.tensor([1.0, 2.0], requires_grad=True) * 2
        tensor([2., 4.], grad_fn=<MulBackward0>)
    """
    name = type(tensor).__name__
    own = type(tensor).__module__ in ("torch", "torch.nn.parameter")
    prefix = "tensor(" if own and name in ("Tensor", "Parameter") else name + "("
    indent = len(prefix)
    opaque = tensor.is_mkldnn
    sparse = tensor.layout is not flambeau.strided and not opaque
    quantized = tensor.is_quantized
    meta = tensor.device.type == "meta"
    empty = tensor.numel() == 0
    suffixes = []
    if tensor.device.type != "cpu":
        suffixes.append(f"device='{tensor.device}'")
    if (sparse or meta or quantized or (empty and tensor.dim() != 1)
            or not (empty or _options.edgeitems)):
        suffixes.append(f"size={tuple(tensor.shape)}")
    if sparse and not meta:
        suffixes.append(f"nnz={tensor._nnz()}")
    if tensor.dtype not in _unmarked_dtypes(meta or (empty and not sparse)):
        suffixes.append(f"dtype={tensor.dtype}")
    if sparse or opaque:
        suffixes.append(f"layout={tensor.layout}")
    if quantized:
        suffixes += _scheme_suffix(tensor)
    suffixes += _grad_suffix(tensor) + _tangent_suffix(tensor)
    if tensor_contents is None:
        if sparse:
            tensor_contents = _sparse_contents(tensor.detach(), indent)
        elif meta:
            tensor_contents = "..."
        elif quantized:
            tensor_contents = format_array(arrays_of([tensor.dequantize()])[0], indent)
        else:
            tensor_contents = format_array(arrays_of([tensor])[0], indent)
    coo = tensor.layout is flambeau.sparse_coo
    text = _join(prefix + tensor_contents, suffixes, indent, newline=coo)
    if type(tensor).__name__ != "Parameter" and getattr(tensor, "_is_param", False):
        # a parameter of another class, or without values
        return f"Parameter containing:\n{text}" if prefix == "tensor(" else f"Parameter({text})"
    return text
