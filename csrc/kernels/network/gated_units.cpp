// Gated linear units: flambeau/kernels/pointwise/activations.py.
#include "kernels/network/module.h"
#include "kernels/pointwise/vecmath.h"

namespace network {

namespace {

// x is (outer, 2 n, inner): the first n along the axis, times the sigmoid of the others.
template <class T>
CLONES void gate(npy_intp outer, npy_intp n, const T *x, T *y) {
    for (npy_intp o = 0; o < outer; o++, x += 2 * n, y += n) {
        const T *gates = x + n;
        INDEPENDENT
        for (npy_intp i = 0; i < n; i++) y[i] = x[i] * vec::sigmoid(gates[i]);
    }
}

template <class T>
CLONES void gate_backward(npy_intp outer, npy_intp n, const T *g, const T *x, T *gx) {
    for (npy_intp o = 0; o < outer; o++, g += n, x += 2 * n, gx += 2 * n) {
        const T *gates = x + n;
        T *by_gates = gx + n;
        INDEPENDENT
        for (npy_intp i = 0; i < n; i++) {
            T s = vec::sigmoid(gates[i]);
            gx[i] = g[i] * s;
            by_gates[i] = g[i] * x[i] * (s * (T(1) - s));
        }
    }
}

// (x, axis), x by rows: the twin knows how others lie
template <class T>
PyObject *glu_(PyObject *const *args) {
    Array x;
    Axis axis;
    if (is_plain_array(args[0]) && !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)args[0])) return declined();
    if (!take<T>(args[0], x) || !axis.read(x, args[1]) || axis.n % 2) return declined();
    std::vector<npy_intp> shape = x.dims();
    npy_intp at = PyLong_AsSsize_t(args[1]), half = axis.n / 2;
    shape[at < 0 ? at + shape.size() : at] = half;
    Array y = Array::empty(shape, TypeNum<T>::value);
    if (!y) return nullptr;
    {
        Unlocked unlocked(x.size() > 32768);
        gate(axis.outer, half * axis.inner, x.data<T>(), y.data<T>());
    }
    return y.release();
}
NETWORK_FLOATS(glu, 0)

// (grad, x, axis)
template <class T>
PyObject *glu_backward_(PyObject *const *args) {
    Array g, x;
    Axis axis;
    if (!take<T>(args[0], g) || !take<T>(args[1], x) || !axis.read(x, args[2]) ||
        2 * g.size() != x.size())
        return declined();
    Array gx = Array::empty(x.dims(), TypeNum<T>::value);
    if (!gx) return nullptr;
    {
        Unlocked unlocked(x.size() > 32768);
        gate_backward(axis.outer, axis.n / 2 * axis.inner, g.data<T>(), x.data<T>(), gx.data<T>());
    }
    return gx.release();
}
NETWORK_FLOATS(glu_backward, 1)

PyMethodDef methods[] = {NETWORK_METHOD(glu, 2),
                         NETWORK_METHOD(glu_backward, 3),
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

}  // namespace network

int register_network_activations(PyObject *module) {
    return PyModule_AddFunctions(module, network::methods);
}
