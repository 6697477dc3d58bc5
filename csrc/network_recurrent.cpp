// The steps of LSTM and GRU layers: flambeau/kernels/recurrent.py.
#include "network_module.h"

#if NETWORK_VECTORS

namespace network {

// The steps of a layer: t of them, n sequences, h hidden units; gates stand side by side in rows of gates * h.
struct Steps {
    npy_intp t, n, h;
    bool reverse;
    npy_intp at(npy_intp i) const { return reverse ? t - 1 - i : i; }
};

}  // namespace network

#define NETWORK_LOOPS "network_recurrent_loops.h"
#include "network_isa.h"

namespace network {

// The sizes, from gates (t, n, gates * h) and a state (n, h).
static bool read_steps(Steps &s, const Array &gates, const Array &state, const Array &w, npy_intp count, PyObject *reverse) {
    if (gates.ndim() != 3 || state.ndim() != 2 || w.ndim() != 2) return false;
    s.t = gates.dim(0);
    s.n = gates.dim(1);
    s.h = state.dim(1);
    s.reverse = PyObject_IsTrue(reverse);
    return s.t > 0 && s.n > 0 && s.h > 0 && gates.dim(2) == count * s.h && state.dim(0) == s.n && w.dim(1) == s.h;
}

static Array copy_of(const Array &x) { return Array(PyArray_NewCopy(x.array(), NPY_CORDER)); }

template <class T>
static PyObject *lstm_steps_(PyObject *const *args) {
    Array gates, h, c, w;
    Steps s;
    if (!take<T>(args[0], gates) || !take<T>(args[1], h) || !take<T>(args[2], c) || !take<T>(args[3], w) ||
        !read_steps(s, gates, h, w, 4, args[4]) || w.dim(0) != 4 * s.h || !same_shape(h, c))
        return declined();
    int type = TypeNum<T>::value;
    Array y = Array::empty({s.t, s.n, s.h}, type), cells = Array::empty({s.t, s.n, s.h}, type),
          saved = Array::empty(gates.dims(), type);
    if (!y || !cells || !saved) return nullptr;
    {
        Unlocked unlocked;
        NETWORK_BEST(lstm_forward<T>)(s, gates.data<T>(), h.data<T>(), c.data<T>(), w.data<T>(), y.data<T>(), cells.data<T>(),
            saved.data<T>());
    }
    return results(y, cells, saved);
}
NETWORK_FLOATS(lstm_steps, 0)

template <class T>
static PyObject *lstm_steps_backward_(PyObject *const *args) {
    Array gy, gh, gc, c, w, cells, saved;
    Steps s;
    if (!take<T>(args[0], gy) || !take<T>(args[1], gh) || !take<T>(args[2], gc) || !take<T>(args[3], c) ||
        !take<T>(args[4], w) || !take<T>(args[5], cells) || !take<T>(args[6], saved) ||
        !read_steps(s, saved, c, w, 4, args[7]) || w.dim(0) != 4 * s.h || !same_shape(gy, cells) ||
        gy.size() != s.t * s.n * s.h || !same_shape(gh, c) || !same_shape(gc, c))
        return declined();
    Array g_gates = Array::empty(saved.dims(), TypeNum<T>::value), h_grad = copy_of(gh), c_grad = copy_of(gc);
    if (!g_gates || !h_grad || !c_grad) return nullptr;
    {
        Unlocked unlocked;
        NETWORK_BEST(lstm_backward<T>)(s, gy.data<T>(), c.data<T>(), w.data<T>(), cells.data<T>(), saved.data<T>(),
            h_grad.data<T>(), c_grad.data<T>(), g_gates.data<T>());
    }
    return results(g_gates, h_grad, c_grad);
}
NETWORK_FLOATS(lstm_steps_backward, 0)

template <class T>
static PyObject *gru_steps_(PyObject *const *args) {
    Array shares, h, w, bias;
    Steps s;
    if (!take<T>(args[0], shares) || !take<T>(args[1], h) || !take<T>(args[2], w) || !take_or_none<T>(args[3], bias) ||
        !read_steps(s, shares, h, w, 3, args[4]) || w.dim(0) != 3 * s.h || (bias && bias.size() != 3 * s.h))
        return declined();
    int type = TypeNum<T>::value;
    Array y = Array::empty({s.t, s.n, s.h}, type), saved = Array::empty({s.t, s.n, 4 * s.h}, type);
    if (!y || !saved) return nullptr;
    {
        Unlocked unlocked;
        NETWORK_BEST(gru_forward<T>)(s, shares.data<T>(), h.data<T>(), w.data<T>(), bias.data<T>(), y.data<T>(),
            saved.data<T>());
    }
    return results(y, saved);
}
NETWORK_FLOATS(gru_steps, 0)

template <class T>
static PyObject *gru_steps_backward_(PyObject *const *args) {
    Array gy, gh, h, w, y, saved;
    Steps s;
    if (!take<T>(args[0], gy) || !take<T>(args[1], gh) || !take<T>(args[2], h) || !take<T>(args[3], w) ||
        !take<T>(args[4], y) || !take<T>(args[5], saved) || !read_steps(s, saved, h, w, 4, args[6]) ||
        w.dim(0) != 3 * s.h || !same_shape(gy, y) || gy.size() != s.t * s.n * s.h || !same_shape(gh, h))
        return declined();
    int type = TypeNum<T>::value;
    Array gi = Array::empty({s.t, s.n, 3 * s.h}, type), gs = Array::empty({s.t, s.n, 3 * s.h}, type),
          h_grad = copy_of(gh);
    if (!gi || !gs || !h_grad) return nullptr;
    {
        Unlocked unlocked;
        NETWORK_BEST(gru_backward<T>)(s, gy.data<T>(), h.data<T>(), w.data<T>(), y.data<T>(), saved.data<T>(), h_grad.data<T>(),
            gi.data<T>(), gs.data<T>());
    }
    return results(gi, gs, h_grad);
}
NETWORK_FLOATS(gru_steps_backward, 0)

static PyMethodDef methods[] = {NETWORK_METHOD(lstm_steps, 5), NETWORK_METHOD(lstm_steps_backward, 8),
                                NETWORK_METHOD(gru_steps, 5), NETWORK_METHOD(gru_steps_backward, 7),
                                {nullptr, nullptr, 0, nullptr}};

}  // namespace network

int register_network_recurrent(PyObject *module) { return PyModule_AddFunctions(module, network::methods); }

#else

int register_network_recurrent(PyObject *) { return 0; }

#endif
