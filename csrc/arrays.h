// Questions about the geometry of NumPy's arrays.
#pragma once
#include "common.h"

// A new array with these strides (null: by rows). NumPy forgets them where there are no elements.
inline PyObject *new_array(PyArray_Descr *stolen, int nd, const npy_intp *shape, const npy_intp *strides) {
    PyObject *r = PyArray_NewFromDescr(&PyArray_Type, stolen, nd, const_cast<npy_intp *>(shape),
                                       const_cast<npy_intp *>(strides), nullptr, 0, nullptr);
    if (r && strides && !PyArray_SIZE((PyArrayObject *)r))
        std::memcpy(PyArray_STRIDES((PyArrayObject *)r), strides, nd * sizeof(npy_intp));
    return r;
}

// A new array with the channels, dimension 1, last in memory.
inline PyObject *new_channels_last(PyArray_Descr *stolen, int nd, const npy_intp *shape) {
    npy_intp strides[NPY_MAXDIMS], step = PyDataType_ELSIZE(stolen);
    strides[1] = step, step *= shape[1];
    for (int d = nd - 1; d >= 0; d--)
        if (d != 1) strides[d] = step, step *= shape[d];
    return new_array(stolen, nd, shape, strides);
}

// Writes strides by rows, as PyTorch counts them, into an array without elements.
inline void lay_by_rows(PyArrayObject *x) {
    npy_intp step = PyArray_ITEMSIZE(x);
    for (int d = PyArray_NDIM(x) - 1; d >= 0; d--) {
        PyArray_STRIDES(x)[d] = step;
        if (PyArray_DIM(x, d)) step *= PyArray_DIM(x, d);
    }
}

// NumPy gives its own empty arrays zeros for all strides. Such an array, or NumPy's view of one,
// gets those that PyTorch counts here, so that views keep them: see `settled` in
// flambeau/kernels/moving/views.py.
inline void settle(PyArrayObject *x) {
    int nd = PyArray_NDIM(x);
    if (!nd || PyArray_STRIDE(x, nd - 1) || PyArray_SIZE(x)) return;
    for (PyObject *at = (PyObject *)x; at && PyArray_CheckExact(at); at = PyArray_BASE((PyArrayObject *)at)) {
        PyArrayObject *array = (PyArrayObject *)at;
        if (PyArray_SIZE(array)) return;
        for (int d = 0; d < PyArray_NDIM(array); d++)
            if (PyArray_STRIDE(array, d)) return;
    }
    lay_by_rows(x);
}

// Has it the strides of a new array? Also where it has one element along a dimension, of which strides
// say nothing that matters but to who asks for them.
inline bool is_row_major(PyArrayObject *x) {
    if (!PyArray_IS_C_CONTIGUOUS(x)) return false;
    settle(x);
    npy_intp step = PyArray_ITEMSIZE(x);
    for (int d = PyArray_NDIM(x) - 1; d >= 0; d--) {
        if (PyArray_STRIDE(x, d) != step) return false;
        if (PyArray_DIM(x, d)) step *= PyArray_DIM(x, d);
    }
    return true;
}
