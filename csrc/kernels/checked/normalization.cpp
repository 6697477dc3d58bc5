// Normalisations with what they used: flambeau/ops/nn/normalize.py.
#include "kernels/checked/checked.h"

#include <algorithm>
#include <limits>

namespace checked {

static Inner rows{"network_layer_norm"}, channels_of{"network_batch_norm"},
    given_statistics{"network_batch_norm_eval"}, groups_of{"network_group_norm"};

static bool ends_with(PyArrayObject *x, int n, const npy_intp *shape) {
    return PyArray_NDIM(x) >= n &&
           PyArray_CompareLists(PyArray_DIMS(x) + PyArray_NDIM(x) - n, shape, n);
}

static bool is_shaped(PyObject *p, PyArrayObject *x, int n, const npy_intp *shape) {
    return p == Py_None || (type_of(p) == PyArray_TYPE(x) && PyArray_NDIM((PyArrayObject *)p) == n &&
                            ends_with((PyArrayObject *)p, n, shape));
}

// A result of no elements, and the statistics of what it would be made of: a mean of 0, 1 / 0 · 0.
static PyObject *of_no_elements(PyArrayObject *x, int nd, const npy_intp *shape) {
    int type = PyArray_TYPE(x);
    Array y = Array::empty(PyArray_NDIM(x), PyArray_DIMS(x), type), mean = Array::empty(nd, shape, type),
          scale = Array::empty(nd, shape, type);
    if (!y || !mean || !scale) return nullptr;
    auto fill = [&](auto zero) {
        using T = decltype(zero);
        std::fill_n(mean.data<T>(), mean.size(), zero);
        std::fill_n(scale.data<T>(), scale.size(), std::numeric_limits<T>::quiet_NaN());
    };
    type == NPY_FLOAT ? fill(0.0f) : fill(0.0);
    return network::results(y, mean, scale);
}

// (input, weight, bias, normalized_shape, eps)
static PyObject *layer_norm(PyObject *const *args) {
    PyArrayObject *x = floats(args[0]);
    npy_intp shape[NPY_MAXDIMS];
    if (!x || !PyTuple_CheckExact(args[3])) return moving::misfit();
    int n = int(PyTuple_GET_SIZE(args[3]));
    if (n < 1 || n > PyArray_NDIM(x)) return moving::misfit();
    for (int d = 0; d < n; d++)
        if (!take_int(PyTuple_GET_ITEM(args[3], d), shape[d])) return moving::misfit();
    if (!ends_with(x, n, shape) || !is_shaped(args[1], x, n, shape) ||
        !is_shaped(args[2], x, n, shape))
        return moving::misfit();
    if (!PyArray_SIZE(x)) {
        std::fill_n(std::copy_n(PyArray_DIMS(x), PyArray_NDIM(x) - n, shape), n, 1);
        return of_no_elements(x, PyArray_NDIM(x), shape);
    }
    Held count;
    if (!count.hold(PyLong_FromLong(n))) return nullptr;
    PyObject *given[] = {args[0], count.get(), args[1], args[2], args[4]};
    return rows(given, 5);
}

// (input, weight, bias, N, C, HxW, group, eps)
static PyObject *group_norm(PyObject *const *args) {
    PyArrayObject *x = floats(args[0]);
    npy_intp n, c, area, groups;
    if (!x || PyArray_NDIM(x) < 2 || has_channels_last(x) || !take_int(args[3], n) ||
        !take_int(args[4], c) || !take_int(args[5], area) || !take_int(args[6], groups) ||
        PyArray_DIM(x, 0) != n || PyArray_DIM(x, 1) != c || PyArray_SIZE(x) != n * c * area ||
        groups < 1 || c % groups || !is_parameter(args[1], x, c) || !is_parameter(args[2], x, c))
        return moving::misfit();
    npy_intp statistics[] = {n, groups};
    if (!PyArray_SIZE(x)) return of_no_elements(x, 2, statistics);
    PyObject *given[] = {args[0], args[6], args[1], args[2], args[7]};
    return groups_of(given, 5);
}

// Running statistics that can be written to.
static bool is_writable(PyObject *running) {
    return running == Py_None || PyArray_ISCARRAY((PyArrayObject *)running);
}

// running = (1 - momentum) running + momentum · factor · value
template <class T>
static void update(PyObject *running, PyObject *values, double momentum, double factor) {
    if (running == Py_None) return;
    T *to = (T *)PyArray_DATA((PyArrayObject *)running);
    const T *from = (const T *)PyArray_DATA((PyArrayObject *)values);
    for (npy_intp i = 0, n = PyArray_SIZE((PyArrayObject *)running); i < n; i++)
        to[i] = T(momentum * (double(from[i]) * factor) + (1 - momentum) * double(to[i]));
}

static PyObject *evaluated(PyObject *const *args, int type) {
    if (args[3] == Py_None || args[4] == Py_None) return moving::misfit();
    PyObject *given[] = {args[0], args[3], args[4], args[1], args[2], args[7]};
    PyObject *y = given_statistics(given, 6);
    if (!y) return nullptr;
    npy_intp none = 0;
    Array result(y), mean = Array::empty(1, &none, type), scale = Array::empty(1, &none, type);
    return mean && scale ? network::results(result, mean, scale) : nullptr;
}

// In training, of no channels at all.
static PyObject *of_nothing(PyArrayObject *x, PyObject *const *args) {
    bool fits = PyArray_NDIM(x) == 1 || (PyArray_NDIM(x) < 4 && !PyArray_DIM(x, 1));
    for (int i = 1; i < 5; i++) fits &= is_parameter(args[i], x, 0);
    if (!fits || (args[3] == Py_None) != (args[4] == Py_None)) return moving::misfit();
    npy_intp none = 0;
    Array y = Array::empty(PyArray_NDIM(x), PyArray_DIMS(x), PyArray_TYPE(x)),
          mean = Array::empty(1, &none, PyArray_TYPE(x)),
          scale = Array::empty(1, &none, PyArray_TYPE(x));
    return y && mean && scale ? network::results(y, mean, scale) : nullptr;
}

// (input, weight, bias, running_mean, running_var, training, momentum, eps)
static PyObject *batch_norm(PyObject *const *args) {
    PyArrayObject *x = floats(args[0]);
    double momentum;
    if (x && !PyArray_SIZE(x) && args[5] == Py_True) return of_nothing(x, args);
    if (!x || PyArray_NDIM(x) < 2 || !PyArray_SIZE(x) || has_channels_last(x) ||
        !take_float(args[6], momentum) ||
        (args[3] == Py_None) != (args[4] == Py_None))
        return moving::misfit();
    npy_intp channels = PyArray_DIM(x, 1), count = PyArray_SIZE(x) / channels;
    for (int i = 1; i < 5; i++)
        if (!is_parameter(args[i], x, channels)) return moving::misfit();
    int type = PyArray_TYPE(x);
    if (args[5] != Py_True) return evaluated(args, type);
    if (count < 2 || !is_writable(args[3]) || !is_writable(args[4])) return moving::misfit();
    PyObject *given[] = {args[0], args[1], args[2], args[7]};
    Held found;
    if (!found.hold(channels_of(given, 4))) return nullptr;
    PyObject *y = PyTuple_GET_ITEM(found.get(), 0), *mean = PyTuple_GET_ITEM(found.get(), 1),
             *variance = PyTuple_GET_ITEM(found.get(), 2), *scale = PyTuple_GET_ITEM(found.get(), 3);
    auto write = type == NPY_FLOAT ? update<float> : update<double>;
    write(args[3], mean, momentum, 1);
    write(args[4], variance, momentum, double(count) / double(count - 1));
    return PyTuple_Pack(3, y, mean, scale);
}

static PyMethodDef methods[] = {CHECKED_METHOD(layer_norm, 5), CHECKED_METHOD(group_norm, 8),
                                CHECKED_METHOD(batch_norm, 8), {nullptr, nullptr, 0, nullptr}};

int register_normalization(PyObject *module) {
    for (Inner *inner : {&rows, &channels_of, &given_statistics, &groups_of})
        if (inner->find(module) < 0) return -1;
    return PyModule_AddFunctions(module, methods);
}

}  // namespace checked
