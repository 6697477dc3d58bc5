"""Types of elements for which PyTorch has no kernel of an op, although ours could compute them.

A program that asks for one is told so, as PyTorch tells it. The table is by ops' names in
`flambeau.core.op.table`; pointwise kernels say themselves which kinds they take.
"""

import functools

import numpy as np

from .reference import TYPE_NAMES, kind_of

# What the kinds of a row are: b(ool), B(yte), i(ntegers of 8, 16 and 32 bits), e (half types),
# c(omplex), W (complex32), 8 (float8).
_RARE = "8W"


def _convolution_name(self, weight, bias, stride, padding, dilation, transposed, *_):
    n = max(self.ndim - 2, 2)
    if transposed:
        return f"slow_conv_transpose{n}d_out_cpu"
    if any(d != 1 for d in dilation):
        return "slow_conv_dilated<>"
    return "" if self.dtype.kind in "iu" else f"slow_conv{n}d_cpu"


def _rows(rows):
    """"op name of PyTorch's kernel [kinds]", a line each."""
    found = {}
    for row in rows.strip().splitlines():
        name, said, *kinds = row.split()
        found[name] = said, (kinds[0] if kinds else "") + _RARE
    return found


REFUSED = {"convolution": (_convolution_name, "bBi" + _RARE)} | _rows("""
_adaptive_avg_pool2d    adaptive_avg_pool2d
_adaptive_avg_pool3d    adaptive_avg_pool3d_cpu
_adaptive_max_pool2d    adaptive_max_pool2d
_adaptive_max_pool3d    adaptive_max_pool3d_cpu
_avg_pool2d             avg_pool2d                          Bi
_avg_pool3d             avg_pool3d_out_frame                Bie
_fractional_max_pool2d  fractional_max_pool2d_out_frame
_fractional_max_pool3d  fractional_max_pool3d_out_frame
_im2col                 im2col_out_cpu
_max_unpool2d           max_unpool2d                        bBilc
_max_unpool3d           max_unpool3d                        bBilc
_reflection_pad1d       reflection_pad1d                    b
_reflection_pad2d       reflection_pad2d                    b
_reflection_pad3d       reflection_pad3d                    b
_replication_pad1d      replication_pad1d                   b
_replication_pad2d      replication_pad2d                   b
_replication_pad3d      replication_pad3d                   b
_running_product        cumprod_out_cpu
addbmm                  addmm_impl_cpu_
addmm                   addmm_impl_cpu_
addmv                   addmv_impl_cpu
addr                    addr_cpu
baddbmm                 baddbmm
bmm                     bmm
cross_along             cross
cummax                  cummax_cpu                          c
cummin                  cummin_cpu                          c
dot                     dot
flip                    flip_cpu
gather                  scatter_gather_tensor_cpu
geqrf                   geqrf_cpu
linalg_cholesky_ex      cholesky_cpu
linalg_ldl_factor_ex    ldl_factor_kernel_cpu
linalg_ldl_solve        ldl_solve_kernel_cpu
linalg_lu_factor_ex     lu_cpu
linalg_qr               geqrf_cpu
linalg_solve_triangular triangular_solve_cpu
logcumsumexp            logcumsumexp_out_cpu
masked_scatter          masked_scatter
max_pool2d_with_indices max_pool2d
max_pool3d_with_indices max_pool3d
median_all              median_out
median_along            median_out
mm                      addmm_impl_cpu_
mv                      addmv_impl_cpu
nanmedian_all           median_out
nanmedian_along         median_out
put                     take_put_cpu
replaced                nan_to_num
running_sum             cumsum_out_cpu
scatter_add             scatter_gather_tensor_cpu
scatter_reduce          scatter_reduce_exclude_input_init
scatter_src             scatter_gather_tensor_cpu
scatter_value           scatter_gather_scalar_cpu
take                    take_cpu
channel_shuffle         channel_shuffle
linear                  addmm_impl_cpu_
pixel_shuffle           pixel_shuffle
pixel_unshuffle         pixel_unshuffle
""")


def kind_of_row(dtype):
    """The letter of a dtype in the table; of others "f" (float32 and wider) and "U"."""
    kind = kind_of(dtype)
    if kind == "f":
        return "e" if dtype.itemsize == 2 else "f"
    if kind != "i":
        return kind
    if dtype.kind == "u":
        return "B" if dtype.itemsize == 1 else "U"
    return "l" if dtype.itemsize == 8 else "i"


def kernel_of(op):
    """The kernel of `op`, which refuses what the table says; itself where that is nothing."""
    said, kinds = REFUSED.get(op.name, ("", ""))
    if not kinds:
        return op.kernel

    @functools.wraps(op.kernel)
    def kernel(first, *rest):
        x = first[0] if op.variadic else first
        if kind_of_row(x.dtype) in kinds and x.size:
            name = said if type(said) is str else said(x, *rest)
            title = TYPE_NAMES.get(x.dtype.name) or x.dtype.name.replace("float", "Float")
            if name:
                raise NotImplementedError(f"\"{name}\" not implemented for '{title}'")
        return op.kernel(first, *rest)
    return kernel


# The native kernels' dtypes, in their order: NumPy's kind, and the letter that the table gives.
_NATIVE = [(d.kind, kind_of_row(d)) for d in map(np.dtype, (
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float16 float32 float64 "
    "complex64 complex128").split())]  # the second float16 stands for bfloat16


def native_dtypes(name, rejected):
    """The dtypes that an op of that name takes, as bits, but for the kinds that it rejects itself:
    calls with others are for the closure."""
    _, kinds = REFUSED.get(name, ("", ""))
    return sum(1 << i for i, (kind, letter) in enumerate(_NATIVE)
               if kind not in rejected and letter not in kinds)
