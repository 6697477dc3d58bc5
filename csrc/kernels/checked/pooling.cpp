// Windows over images: flambeau/ops/spatial/pooling_checks.py says what is wrong with those that misfit.
#include "kernels/checked/checked.h"

namespace checked {

static Inner max_of{"network_max_pool"}, values_of{"network_max_pool_values"},
    average_of{"network_avg_pool"},
    adaptive_average_of{"network_adaptive_avg_pool"}, adaptive_max_of{"network_adaptive_max_pool"};

// How many dimensions the windows have: as many as `sizes`; 0 where that does not fit.
static int dims_of(PyArrayObject *x, PyObject *sizes) {
    if (!x || !PyTuple_CheckExact(sizes)) return 0;
    int n = int(PyTuple_GET_SIZE(sizes)), rank = PyArray_NDIM(x);
    bool fits = n >= 2 && n <= MAX_DIMS && (rank == n + 1 || rank == n + 2);
    return fits && has_elements(x, n + 1) && !has_channels_last(x) ? n : 0;
}

struct Windows {
    npy_intp kernel[MAX_DIMS], stride[MAX_DIMS], padding[MAX_DIMS], dilation[MAX_DIMS];
    PyObject *strides, *paddings, *dilations;
    Held held[4];

    // Of arguments kernel_size, stride, padding and (or null) dilation.
    bool read(PyArrayObject *x, int n, PyObject *const *args, PyObject *dilations_) {
        if (!per_axis(args[0], n, kernel, held[0])) return false;
        bool own = PyTuple_CheckExact(args[1]) && !PyTuple_GET_SIZE(args[1]);
        strides = per_axis(own ? args[0] : args[1], n, stride, held[1]);
        paddings = strides ? per_axis(args[2], n, padding, held[2]) : nullptr;
        dilations = paddings && dilations_ ? per_axis(dilations_, n, dilation, held[3]) : nullptr;
        if (!paddings || (dilations_ && !dilations)) return false;
        const npy_intp *size = PyArray_DIMS(x) + PyArray_NDIM(x) - n;
        for (int d = 0; d < n; d++) {
            npy_intp step = dilations_ ? dilation[d] : 1, k = kernel[d], p = padding[d];
            if (k < 1 || stride[d] < 1 || step < 1 || p < 0) return false;
            if (p > (k - 1) * step / 2 + (step > 1 ? 0 : k % 2 == 0)) return false;
            if (size[d] + 2 * p < step * (k - 1) + 1) return false;
        }
        return true;
    }
};

static PyObject *wrong() { return PyErr_Occurred() ? nullptr : moving::misfit(); }

// (self, kernel_size, stride, padding, dilation, ceil_mode)
static PyObject *max_pool(PyObject *const *args) {
    PyArrayObject *x = floats(args[0]);
    int n = dims_of(x, args[1]);
    Windows w;
    if (!n || !w.read(x, n, args + 1, args[4])) return wrong();
    if (n == 3 && PyArray_NDIM(x) == 4 && !PyArray_IS_C_CONTIGUOUS(x)) return wrong();  // keeps its layout
    PyObject *given[] = {args[0], args[1], w.strides, w.paddings, w.dilations, args[5]};
    return max_of(given, 6);
}

// (self, kernel_size, stride, padding, dilation, ceil_mode) of lines: only the values.
static PyObject *max_pool1d(PyObject *const *args) {
    PyArrayObject *x = floats(args[0]);
    Windows w;
    if (!x || PyArray_NDIM(x) < 2 || PyArray_NDIM(x) > 3 || !has_elements(x, 2) ||
        !PyTuple_CheckExact(args[1]) || PyTuple_GET_SIZE(args[1]) != 1 ||
        !w.read(x, 1, args + 1, args[4]))
        return wrong();
    PyObject *given[] = {args[0], args[1], w.strides, w.paddings, w.dilations, args[5]};
    return values_of(given, 6);
}

// (self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
static PyObject *avg_pool(PyObject *const *args) {
    PyArrayObject *x = floats(args[0]);
    int n = dims_of(x, args[1]);
    Windows w;
    bool by_zero = PyLong_Check(args[6]) && !PyObject_IsTrue(args[6]);
    if (!n || by_zero || !w.read(x, n, args + 1, nullptr)) return wrong();
    PyObject *given[] = {args[0], args[1], w.strides, w.paddings, args[4], args[5], args[6]};
    return average_of(given, 7);
}

static PyObject *adaptive(const Inner &inner, PyObject *const *args) {
    PyArrayObject *x = floats(args[0]);
    int n = dims_of(x, args[1]);
    for (int d = 0; d < n; d++) {
        npy_intp size;
        if (!take_int(PyTuple_GET_ITEM(args[1], d), size) || size < 0) return wrong();
    }
    return n ? inner(args, 2) : wrong();
}

// (self, output_size)
static PyObject *adaptive_avg_pool(PyObject *const *args) {
    return adaptive(adaptive_average_of, args);
}
static PyObject *adaptive_max_pool(PyObject *const *args) { return adaptive(adaptive_max_of, args); }

static PyMethodDef methods[] = {CHECKED_METHOD(max_pool, 6), CHECKED_METHOD(max_pool1d, 6),
                                CHECKED_METHOD(avg_pool, 7),
                                CHECKED_METHOD(adaptive_avg_pool, 2),
                                CHECKED_METHOD(adaptive_max_pool, 2),
                                {nullptr, nullptr, 0, nullptr}};

int register_pooling(PyObject *module) {
    for (Inner *inner : {&max_of, &values_of, &average_of, &adaptive_average_of, &adaptive_max_of})
        if (inner->find(module) < 0) return -1;
    return PyModule_AddFunctions(module, methods);
}

}  // namespace checked
