// Kernels that check their arguments themselves, so that a call needs no Python. They take what is
// common: plain arrays of float or double whose channels don't lie last. For all else, wrong or rare, they raise Misfit: whoever called them knows more.
#pragma once
#include "kernels/moving/strided.h"
#include "kernels/network/module.h"

#include <structmember.h>

namespace checked {

using network::Array;
using network::take_float;
using network::take_int;
using network::type_of;

constexpr int MAX_DIMS = 3;

// An owned reference.
class Held {
    PyObject *object = nullptr;

 public:
    Held() = default;
    Held(const Held &) = delete;
    ~Held() { Py_XDECREF(object); }
    PyObject *hold(PyObject *owned) {
        Py_XDECREF(object);
        return object = owned;
    }
    PyObject *get() const { return object; }
    PyObject *release() {
        PyObject *given = object;
        object = nullptr;
        return given;
    }
};

inline PyArrayObject *floats(PyObject *x) {
    int type = type_of(x);
    return type == NPY_FLOAT || type == NPY_DOUBLE ? (PyArrayObject *)x : nullptr;
}

// Has each of the last `n` dimensions elements?
inline bool has_elements(PyArrayObject *x, int n) {
    for (int d = PyArray_NDIM(x) - n; d < PyArray_NDIM(x); d++)
        if (PyArray_DIM(x, d) < 1) return false;
    return true;
}

// None, or as many elements in one dimension as there are channels, of the type of `x`.
inline bool is_parameter(PyObject *p, PyArrayObject *x, npy_intp channels) {
    if (p == Py_None) return true;
    PyArrayObject *a = (PyArrayObject *)p;
    return type_of(p) == PyArray_TYPE(x) && PyArray_NDIM(a) == 1 && PyArray_DIM(a, 0) == channels;
}

// `has_channels_last` of flambeau/kernels/moving/layouts.py.
bool has_channels_last(PyArrayObject *x);

// A number for each of n dimensions, where one stands for all; gives the tuple of them, which is
// `x` itself or held. Null without an error: something else.
PyObject *per_axis(PyObject *x, int n, npy_intp *to, Held &held);

PyObject *tuple_of(int n, const npy_intp *values);

// A function of the module, called for what has been checked; what it declines is a misfit.
struct Inner {
    const char *name;
    PyObject *function = nullptr;
    PyObject *operator()(PyObject *const *args, Py_ssize_t n) const;
    int find(PyObject *module) {
        function = PyObject_GetAttrString(module, name);
        return function ? 0 : -1;
    }
};

using Call = PyObject *(*)(PyObject *const *args);

template <Call call, int count>
PyObject *entry(PyObject *, PyObject *const *args, Py_ssize_t n) {
    if (n != count) return moving::misfit();
    try {
        return call(args);
    } catch (const std::bad_alloc &) {
        return PyErr_NoMemory();
    }
}

#define CHECKED_METHOD(name, count)                                                       \
    {"network_checked_" #name, (PyCFunction)(void (*)(void))checked::entry<name, count>, \
     METH_FASTCALL, nullptr}

int register_bags(PyObject *module);
int register_columns(PyObject *module);
int register_convolution(PyObject *module);
int register_normalization(PyObject *module);
int register_pooling(PyObject *module);
int register_rearranging(PyObject *module);

}  // namespace checked
