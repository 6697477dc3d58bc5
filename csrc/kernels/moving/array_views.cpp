// Views of arrays: the same memory with another shape, strides and offset.
#include "arrays.h"
#include "kernels/moving/strided.h"

#include <algorithm>

// A view of `array` with the given extents and strides (in bytes), `offset` bytes from its first
// element.
static PyObject *make_view(PyArrayObject *array, int nd, const npy_intp *shape,
                           const npy_intp *strides, npy_intp offset) {
    PyArray_Descr *descr = PyArray_DESCR(array);
    Py_INCREF(descr);
    PyObject *view = PyArray_NewFromDescr(&PyArray_Type, descr, nd, const_cast<npy_intp *>(shape),
                                          const_cast<npy_intp *>(strides),
                                          PyArray_BYTES(array) + offset,
                                          PyArray_FLAGS(array) & NPY_ARRAY_WRITEABLE, nullptr);
    if (!view) return nullptr;
    Py_INCREF(array);
    if (PyArray_SetBaseObject((PyArrayObject *)view, (PyObject *)array) < 0) {
        Py_DECREF(view);
        return nullptr;
    }
    return view;
}

static int integers(PyObject *sequence, npy_intp *out) {
    if (!PyTuple_Check(sequence)) {
        PyErr_SetString(PyExc_TypeError, "expected a tuple of integers");
        return -1;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(sequence);
    if (n > NPY_MAXDIMS) {
        PyErr_SetString(PyExc_ValueError, "too many dimensions");
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        out[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(sequence, i));
        if (out[i] == -1 && PyErr_Occurred()) return -1;
    }
    return int(n);
}

static bool is_array(PyObject *object) {
    if (PyArray_Check(object)) return settle((PyArrayObject *)object), true;
    PyErr_SetString(PyExc_TypeError, "expected an array");
    return false;
}

static PyObject *view_strided(PyObject *, PyObject *const *args, Py_ssize_t nargs) {
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    if (nargs != 4 || !is_array(args[0])) return nargs == 4 ? nullptr : PyErr_Format(
        PyExc_TypeError, "strided takes 4 arguments");
    int nd = integers(args[1], shape);
    if (nd < 0 || integers(args[2], strides) != nd) return nullptr;
    npy_intp offset = PyLong_AsSsize_t(args[3]);
    if (offset == -1 && PyErr_Occurred()) return nullptr;
    return make_view((PyArrayObject *)args[0], nd, shape, strides, offset);
}

static PyObject *view_expand(PyObject *, PyObject *const *args, Py_ssize_t nargs) {
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    if (nargs != 2 || !is_array(args[0])) return nargs == 2 ? nullptr : PyErr_Format(
        PyExc_TypeError, "expand takes 2 arguments");
    PyArrayObject *array = (PyArrayObject *)args[0];
    int nd = integers(args[1], shape);
    if (nd < 0) return nullptr;
    int own = PyArray_NDIM(array), extra = nd - own;
    bool fits = extra >= 0;
    for (int i = 0; fits && i < nd; i++) {
        npy_intp n = i < extra ? 1 : PyArray_DIM(array, i - extra);
        if (shape[i] == -1 && i >= extra) shape[i] = n;
        fits = n == shape[i] || (n == 1 && shape[i] >= 0);
        strides[i] = i < extra || n != shape[i] ? 0 : PyArray_STRIDE(array, i - extra);
    }
    if (!fits) {
        PyErr_SetString(moving::Misfit, "the shape cannot be expanded to this one");
        return nullptr;
    }
    return make_view(array, nd, shape, strides, 0);
}

static PyObject *view_select(PyObject *, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 3 || !is_array(args[0])) return nargs == 3 ? nullptr : PyErr_Format(
        PyExc_TypeError, "select takes 3 arguments");
    PyArrayObject *array = (PyArrayObject *)args[0];
    npy_intp dim = PyLong_AsSsize_t(args[1]), index = PyLong_AsSsize_t(args[2]);
    if (PyErr_Occurred()) return nullptr;
    int nd = PyArray_NDIM(array);
    if (dim < 0 || dim >= nd) {
        PyErr_SetString(moving::Misfit, "no such dimension");
        return nullptr;
    }
    npy_intp n = PyArray_DIM(array, int(dim));
    if (index < -n || index >= n) {
        PyErr_Format(moving::Misfit, "index %zd is out of bounds for dimension %zd with size %zd",
                     index, dim, n);
        return nullptr;
    }
    if (index < 0) index += n;
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    for (int i = 0, j = 0; i < nd; i++) {
        if (i == dim) continue;
        shape[j] = PyArray_DIM(array, i);
        strides[j++] = PyArray_STRIDE(array, i);
    }
    return make_view(array, nd - 1, shape, strides, index * PyArray_STRIDE(array, int(dim)));
}

static PyObject *view_unsqueeze(PyObject *, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 2 || !is_array(args[0])) return nargs == 2 ? nullptr : PyErr_Format(
        PyExc_TypeError, "unsqueeze takes 2 arguments");
    PyArrayObject *array = (PyArrayObject *)args[0];
    int nd = PyArray_NDIM(array);
    npy_intp dim = PyLong_AsSsize_t(args[1]), shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    if (dim == -1 && PyErr_Occurred()) return nullptr;
    if (dim < 0 || dim > nd || nd == NPY_MAXDIMS)
        return PyErr_Format(moving::Misfit, "no place for another dimension");
    for (int d = 0; d < nd; d++) {
        shape[d + (d >= dim)] = PyArray_DIM(array, d);
        strides[d + (d >= dim)] = PyArray_STRIDE(array, d);
    }
    shape[dim] = 1;  // its stride, which nothing reads, is PyTorch's
    strides[dim] = dim < nd ? PyArray_DIM(array, dim) * PyArray_STRIDE(array, dim)
                            : PyArray_ITEMSIZE(array);
    return make_view(array, nd + 1, shape, strides, 0);
}

static PyObject *view_permute(PyObject *, PyObject *const *args, Py_ssize_t nargs) {
    npy_intp order[NPY_MAXDIMS], shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    if (nargs != 2 || !is_array(args[0])) return nargs == 2 ? nullptr : PyErr_Format(
        PyExc_TypeError, "permute takes 2 arguments");
    PyArrayObject *array = (PyArrayObject *)args[0];
    int nd = integers(args[1], order);
    if (nd < 0) return nullptr;
    uint64_t seen = 0;
    for (int d = 0; d < nd; d++) {
        if (nd != PyArray_NDIM(array) || order[d] < 0 || order[d] >= nd || seen >> order[d] & 1)
            return PyErr_Format(moving::Misfit, "not an order of the dimensions");
        seen |= uint64_t(1) << order[d];
        shape[d] = PyArray_DIM(array, order[d]), strides[d] = PyArray_STRIDE(array, order[d]);
    }
    return make_view(array, nd, shape, strides, 0);
}

static PyObject *view_transpose(PyObject *, PyObject *const *args, Py_ssize_t nargs) {
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    if (nargs != 3 || !is_array(args[0])) return nargs == 3 ? nullptr : PyErr_Format(
        PyExc_TypeError, "transpose takes 3 arguments");
    PyArrayObject *array = (PyArrayObject *)args[0];
    int nd = PyArray_NDIM(array);
    npy_intp a = PyLong_AsSsize_t(args[1]), b = PyLong_AsSsize_t(args[2]);
    if (PyErr_Occurred()) return nullptr;
    std::copy_n(PyArray_DIMS(array), nd, shape);
    std::copy_n(PyArray_STRIDES(array), nd, strides);
    if (nd) {
        if (a < 0 || a >= nd || b < 0 || b >= nd)
            return PyErr_Format(moving::Misfit, "no such dimension");
        std::swap(shape[a], shape[b]), std::swap(strides[a], strides[b]);
    }
    return make_view(array, nd, shape, strides, 0);
}

// The strides of `array` seen with another shape of as many elements; false where there are none.
// From the last dimension on, each range of memory that dimensions of the array share is divided
// anew.
bool moving::reshaped_strides(PyArrayObject *array, int nd, const npy_intp *shape,
                              npy_intp *strides) {
    int at = nd - 1;
    npy_intp base = PyArray_NDIM(array) ? PyArray_STRIDE(array, PyArray_NDIM(array) - 1) : 1;
    npy_intp range = 1, divided = 1;
    for (int d = PyArray_NDIM(array) - 1; d >= 0; d--) {
        range *= PyArray_DIM(array, d);
        if (d && (PyArray_DIM(array, d - 1) == 1 || PyArray_STRIDE(array, d - 1) == range * base))
            continue;
        for (; at >= 0 && (divided < range || shape[at] == 1); at--) {
            strides[at] = divided * base;
            divided *= shape[at];
        }
        if (divided != range) return false;
        if (d) {
            base = PyArray_STRIDE(array, d - 1);
            range = divided = 1;
        }
    }
    return at == -1;
}

// The same elements in another shape on the same memory; None where that needs a copy.
static PyObject *view_reshape(PyObject *, PyObject *const *args, Py_ssize_t nargs) {
    npy_intp shape[NPY_MAXDIMS];
    if (nargs != 2 || !is_array(args[0])) return nargs == 2 ? nullptr : PyErr_Format(
        PyExc_TypeError, "reshape takes 2 arguments");
    PyArrayObject *array = (PyArrayObject *)args[0];
    int nd = integers(args[1], shape);
    if (nd < 0) return nullptr;
    if (PyArray_NDIM(array) && PyArray_SIZE(array) && !PyArray_IS_C_CONTIGUOUS(array)) {
        npy_intp strides[NPY_MAXDIMS], count = 1;
        for (int i = 0; i < nd; i++) count *= shape[i];
        if (count != PyArray_SIZE(array)) {
            PyErr_SetString(moving::Misfit, "the shape has another number of elements");
            return nullptr;
        }
        if (moving::reshaped_strides(array, nd, shape, strides))
            return make_view(array, nd, shape, strides, 0);
        Py_RETURN_NONE;
    }
    PyArray_Dims dims = {shape, nd};
    PyObject *result = PyArray_Newshape(array, &dims, NPY_CORDER);
    if (!result) return nullptr;
    if (PyArray_SIZE(array) && PyArray_DATA((PyArrayObject *)result) != PyArray_DATA(array)) {
        Py_DECREF(result);
        Py_RETURN_NONE;
    }
    if (!PyArray_SIZE(array) && result != (PyObject *)array) lay_by_rows((PyArrayObject *)result);
    if (result == (PyObject *)array) {        // NumPy gives the array itself for its own shape
        Py_DECREF(result);
        return make_view(array, PyArray_NDIM(array), PyArray_DIMS(array), PyArray_STRIDES(array), 0);
    }
    return result;
}

#define VIEW_METHOD(name) {#name, (PyCFunction)(void (*)())name, METH_FASTCALL, nullptr}
static PyMethodDef methods[] = {VIEW_METHOD(view_strided), VIEW_METHOD(view_expand),
                                VIEW_METHOD(view_select), VIEW_METHOD(view_reshape),
                                VIEW_METHOD(view_unsqueeze), VIEW_METHOD(view_permute),
                                VIEW_METHOD(view_transpose), {nullptr, nullptr, 0, nullptr}};

int register_views(PyObject *module) { return PyModule_AddFunctions(module, methods); }
