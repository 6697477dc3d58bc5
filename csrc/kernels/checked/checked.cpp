#include "kernels/checked/checked.h"

namespace checked {

bool has_channels_last(PyArrayObject *x) {
    static const int orders[2][5] = {{1, 3, 2, 0}, {1, 4, 3, 2, 0}};  // the nearest in memory first
    int n = PyArray_NDIM(x);
    if (n != 4 && n != 5) return false;
    bool has_one = false;
    for (int d = 0; d < n; d++) has_one |= PyArray_DIM(x, d) == 1;
    if (PyArray_IS_C_CONTIGUOUS(x) && !has_one) return false;
    if (!PyArray_STRIDE(x, 1)) return false;  // an expanded channel lies nowhere
    npy_intp least = 0;
    for (int i = 0; i < n; i++) {
        int axis = orders[n - 4][i];
        npy_intp extent = PyArray_DIM(x, axis), stride = PyArray_STRIDE(x, axis);
        if (!extent || stride < least) return false;
        if (!axis && least == PyArray_STRIDE(x, 1)) return false;
        least = stride * extent;
    }
    return true;
}

PyObject *per_axis(PyObject *x, int n, npy_intp *to, Held &held) {
    if (!PyTuple_CheckExact(x)) return nullptr;
    Py_ssize_t given = PyTuple_GET_SIZE(x);
    if (given != n && given != 1) return nullptr;
    for (int i = 0; i < n; i++)
        if (!take_int(PyTuple_GET_ITEM(x, given == 1 ? 0 : i), to[i])) return nullptr;
    return given == n ? x : held.hold(tuple_of(n, to));
}

PyObject *tuple_of(int n, const npy_intp *values) {
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++) {
        PyObject *value = PyLong_FromSsize_t(values[i]);
        if (!value) {
            Py_DECREF(tuple);
            return nullptr;
        }
        PyTuple_SET_ITEM(tuple, i, value);
    }
    return tuple;
}

PyObject *Inner::operator()(PyObject *const *args, Py_ssize_t n) const {
    PyObject *found = PyObject_Vectorcall(function, args, n, nullptr);
    if (found != Py_NotImplemented) return found;
    Py_DECREF(found);
    return moving::misfit();
}

}  // namespace checked

int register_checked(PyObject *module) {
    using namespace checked;
    for (auto add : {register_bags, register_columns, register_convolution, register_normalization,
                     register_pooling, register_rearranging})
        if (add(module)) return -1;
    return 0;
}
