// Questions about the geometry of NumPy's arrays.
#pragma once
#include "common.h"

// Has it the strides of a new array? Also where it has one element along a dimension, of which strides
// say nothing that matters but to who asks for them.
inline bool is_row_major(PyArrayObject *x) {
    if (!PyArray_IS_C_CONTIGUOUS(x)) return false;
    npy_intp step = PyArray_ITEMSIZE(x);
    bool same = true;
    for (int d = PyArray_NDIM(x) - 1; d >= 0; d--) {
        npy_intp extent = PyArray_DIM(x, d);
        if (!extent) return true;
        same &= PyArray_STRIDE(x, d) == step;
        step *= extent;
    }
    return same;
}
