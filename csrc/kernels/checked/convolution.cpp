// The general convolution, with a bias: `_convolve` of flambeau/ops/spatial/convolve.py.
#include "kernels/checked/checked.h"

namespace checked {

static Inner correlate{"network_correlate"}, spread{"network_spread"}, brain_correlate{"network_brain_correlate"};

// An array of float or double; of bfloat16, where that has loops.
static PyArrayObject *image(PyObject *x, bool transposed) {
    bool brain = brain_correlate.function && !transposed && type_of(x) >= 0 && dtype_of(type_of(x)) == BF;
    return brain ? (PyArrayObject *)x : floats(x);
}

template <class T>
static void add_bias(PyArrayObject *result, PyArrayObject *bias) {
    npy_intp n = PyArray_DIM(result, 0), channels = PyArray_DIM(result, 1),
             area = PyArray_SIZE(result) / std::max<npy_intp>(1, n * channels),
             step = PyArray_STRIDE(bias, 0);
    T *to = (T *)PyArray_DATA(result);
    for (npy_intp i = 0; i < n * channels; i++, to += area) {
        T b = *(T *)(PyArray_BYTES(bias) + i % channels * step);
        for (npy_intp k = 0; k < area; k++) to[k] += b;
    }
}

// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
static PyObject *convolution(PyObject *const *args) {
    bool transposed = args[6] == Py_True;
    PyArrayObject *x = image(args[0], transposed), *w = image(args[1], transposed);
    npy_intp stride[MAX_DIMS], padding[MAX_DIMS], dilation[MAX_DIMS], extra[MAX_DIMS], groups;
    Held held[4];
    int n = x ? PyArray_NDIM(x) - 2 : 0;
    if (!x || !w || n < 1 || n > MAX_DIMS || PyArray_NDIM(w) != n + 2 ||
        PyArray_TYPE(x) != PyArray_TYPE(w) || !has_elements(x, n + 1) || !has_elements(w, n + 2) ||
        has_channels_last(x) || has_channels_last(w) ||
        !take_int(args[8], groups) || groups < 1)
        return moving::misfit();
    PyObject *strides = per_axis(args[3], n, stride, held[0]),
             *paddings = strides ? per_axis(args[4], n, padding, held[1]) : nullptr,
             *dilations = paddings ? per_axis(args[5], n, dilation, held[2]) : nullptr;
    if (!dilations) return PyErr_Occurred() ? nullptr : moving::misfit();
    const npy_intp *size = PyArray_DIMS(x) + 2, *kernel = PyArray_DIMS(w) + 2;
    for (int d = 0; d < n; d++)
        if (stride[d] < 1 || padding[d] < 0 || dilation[d] < 1) return moving::misfit();
    npy_intp first = PyArray_DIM(w, 0), second = PyArray_DIM(w, 1),
             channels = transposed ? second * groups : first;
    if (first % groups || PyArray_DIM(x, 1) != (transposed ? first : second * groups) ||
        !is_parameter(args[2], x, channels))
        return moving::misfit();
    Held result, shape;
    if (transposed) {
        npy_intp extents[MAX_DIMS + 2] = {PyArray_DIM(x, 0), channels};
        if (!per_axis(args[7], n, extra, held[3]))
            return PyErr_Occurred() ? nullptr : moving::misfit();
        for (int d = 0; d < n; d++) {
            extents[d + 2] = (size[d] - 1) * stride[d] - 2 * padding[d] +
                             dilation[d] * (kernel[d] - 1) + extra[d] + 1;
            if (extra[d] < 0 || (extra[d] >= stride[d] && extra[d] >= dilation[d]) ||
                extents[d + 2] < 1)
                return moving::misfit();
        }
        if (!shape.hold(tuple_of(n + 2, extents))) return nullptr;
        PyObject *given[] = {args[0], args[1], shape.get(), strides, paddings, dilations, args[8]};
        result.hold(spread(given, 7));
    } else {
        for (int d = 0; d < n; d++)
            if (size[d] + 2 * padding[d] < dilation[d] * (kernel[d] - 1) + 1)
                return moving::misfit();
        if (PyArray_TYPE(x) != NPY_FLOAT && PyArray_TYPE(x) != NPY_DOUBLE) {  // which adds the bias itself
            PyObject *given[] = {args[0], args[1], args[2], strides, paddings, dilations, args[8]};
            return brain_correlate(given, 7);
        }
        PyObject *given[] = {args[0], args[1], strides, paddings, dilations, args[8]};
        result.hold(correlate(given, 6));
    }
    if (!result.get()) return nullptr;
    if (args[2] != Py_None) {
        auto add = PyArray_TYPE(x) == NPY_FLOAT ? add_bias<float> : add_bias<double>;
        add((PyArrayObject *)result.get(), (PyArrayObject *)args[2]);
    }
    return result.release();
}

static PyMethodDef methods[] = {CHECKED_METHOD(convolution, 9), {nullptr, nullptr, 0, nullptr}};

int register_convolution(PyObject *module) {
    if (correlate.find(module) < 0 || spread.find(module) < 0) {  // compiled without vectors
        PyErr_Clear();
        return 0;
    }
    if (brain_correlate.find(module) < 0) PyErr_Clear();
    return PyModule_AddFunctions(module, methods);
}

}  // namespace checked
