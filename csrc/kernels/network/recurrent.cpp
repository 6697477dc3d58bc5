// The steps of LSTM, GRU and plain layers: flambeau/kernels/network/recurrent.py.
#include "kernels/network/module.h"

#if NETWORK_VECTORS

namespace network {

// The steps of a layer: t of them, n sequences, h hidden units; gates stand side by side in rows of
// gates * h.
struct Steps {
    npy_intp t, n, h;
    bool reverse;
    npy_intp at(npy_intp i) const { return reverse ? t - 1 - i : i; }
};

}  // namespace network

#define INLINE_LAMBDA __attribute__((always_inline))
#define NETWORK_LOOPS "kernels/network/recurrent_loops.h"
#include "kernels/network/isa.h"

namespace network {

// The sizes, from gates (t, n, gates * h) and a state (n, h).
static bool read_steps(Steps &s, const Array &gates, const Array &state, const Array &w,
                       npy_intp count, PyObject *reverse) {
    if (gates.ndim() != 3 || state.ndim() != 2 || w.ndim() != 2) return false;
    s.t = gates.dim(0);
    s.n = gates.dim(1);
    s.h = state.dim(1);
    s.reverse = PyObject_IsTrue(reverse);
    return s.t > 0 && s.n > 0 && s.h > 0 && gates.dim(2) == count * s.h && state.dim(0) == s.n &&
           w.dim(1) == s.h;
}

static Array copy_of(const Array &x) { return Array(PyArray_NewCopy(x.array(), NPY_CORDER)); }

template <class T>
static PyObject *lstm_steps_(PyObject *const *args) {
    Array gates, h, c, w;
    Steps s;
    if (!take<T>(args[0], gates) || !take<T>(args[1], h) || !take<T>(args[2], c) ||
        !take<T>(args[3], w) || !read_steps(s, gates, h, w, 4, args[4]) || w.dim(0) != 4 * s.h ||
        !same_shape(h, c))
        return declined();
    int type = TypeNum<T>::value;
    Array y = Array::empty({s.t, s.n, s.h}, type), cells = Array::empty({s.t, s.n, s.h}, type),
          saved = Array::empty(gates.dims(), type);
    if (!y || !cells || !saved) return nullptr;
    {
        Unlocked unlocked;
        NETWORK_BEST(lstm_forward<T>)(s, gates.data<T>(), h.data<T>(), c.data<T>(), w.data<T>(),
                                      y.data<T>(), cells.data<T>(), saved.data<T>());
    }
    return results(y, cells, saved);
}
NETWORK_FLOATS(lstm_steps, 0)

template <class T>
static PyObject *lstm_steps_backward_(PyObject *const *args) {
    Array gy, gh, gc, c, w, cells, saved;
    Steps s;
    if (!take<T>(args[0], gy) || !take<T>(args[1], gh) || !take<T>(args[2], gc) ||
        !take<T>(args[3], c) || !take<T>(args[4], w) || !take<T>(args[5], cells) ||
        !take<T>(args[6], saved) || !read_steps(s, saved, c, w, 4, args[7]) ||
        w.dim(0) != 4 * s.h || !same_shape(gy, cells) || gy.size() != s.t * s.n * s.h ||
        !same_shape(gh, c) || !same_shape(gc, c))
        return declined();
    Array g_gates = Array::empty(saved.dims(), TypeNum<T>::value), h_grad = copy_of(gh),
          c_grad = copy_of(gc);
    if (!g_gates || !h_grad || !c_grad) return nullptr;
    {
        Unlocked unlocked;
        NETWORK_BEST(lstm_backward<T>)(s, gy.data<T>(), c.data<T>(), w.data<T>(), cells.data<T>(),
                                       saved.data<T>(), h_grad.data<T>(), c_grad.data<T>(),
                                       g_gates.data<T>());
    }
    return results(g_gates, h_grad, c_grad);
}
NETWORK_FLOATS(lstm_steps_backward, 0)

template <class T>
static PyObject *gru_steps_(PyObject *const *args) {
    Array shares, h, w, bias;
    Steps s;
    if (!take<T>(args[0], shares) || !take<T>(args[1], h) || !take<T>(args[2], w) ||
        !take_or_none<T>(args[3], bias) || !read_steps(s, shares, h, w, 3, args[4]) ||
        w.dim(0) != 3 * s.h || (bias && bias.size() != 3 * s.h))
        return declined();
    int type = TypeNum<T>::value;
    Array y = Array::empty({s.t, s.n, s.h}, type), saved = Array::empty({s.t, s.n, 4 * s.h}, type);
    if (!y || !saved) return nullptr;
    {
        Unlocked unlocked;
        NETWORK_BEST(gru_forward<T>)(s, shares.data<T>(), h.data<T>(), w.data<T>(), bias.data<T>(),
                                     y.data<T>(), saved.data<T>());
    }
    return results(y, saved);
}
NETWORK_FLOATS(gru_steps, 0)

template <class T>
static PyObject *gru_steps_backward_(PyObject *const *args) {
    Array gy, gh, h, w, y, saved;
    Steps s;
    if (!take<T>(args[0], gy) || !take<T>(args[1], gh) || !take<T>(args[2], h) ||
        !take<T>(args[3], w) || !take<T>(args[4], y) || !take<T>(args[5], saved) ||
        !read_steps(s, saved, h, w, 4, args[6]) || w.dim(0) != 3 * s.h || !same_shape(gy, y) ||
        gy.size() != s.t * s.n * s.h || !same_shape(gh, h))
        return declined();
    int type = TypeNum<T>::value;
    Array gi = Array::empty({s.t, s.n, 3 * s.h}, type),
          gs = Array::empty({s.t, s.n, 3 * s.h}, type), h_grad = copy_of(gh);
    if (!gi || !gs || !h_grad) return nullptr;
    {
        Unlocked unlocked;
        NETWORK_BEST(gru_backward<T>)(s, gy.data<T>(), h.data<T>(), w.data<T>(), y.data<T>(),
                                      saved.data<T>(), h_grad.data<T>(), gi.data<T>(),
                                      gs.data<T>());
    }
    return results(gi, gs, h_grad);
}
NETWORK_FLOATS(gru_steps_backward, 0)

template <class T>
static PyObject *rnn_steps_(PyObject *const *args) {
    Array gates, h, w;
    Steps s;
    if (!take<T>(args[0], gates) || !take<T>(args[1], h) || !take<T>(args[2], w) ||
        !read_steps(s, gates, h, w, 1, args[4]) || w.dim(0) != s.h)
        return declined();
    Array y = Array::empty(gates.dims(), TypeNum<T>::value);
    if (!y) return nullptr;
    bool relu = PyObject_IsTrue(args[3]);
    {
        Unlocked unlocked;
        NETWORK_BEST(rnn_forward<T>)(s, gates.data<T>(), h.data<T>(), w.data<T>(), relu,
                                     y.data<T>());
    }
    return y.release();
}
NETWORK_FLOATS(rnn_steps, 0)

template <class T>
static PyObject *rnn_steps_backward_(PyObject *const *args) {
    Array gy, gh, w, y;
    Steps s;
    if (!take<T>(args[0], gy) || !take<T>(args[1], gh) || !take<T>(args[2], w) ||
        !take<T>(args[3], y) || !read_steps(s, y, gh, w, 1, args[5]) || w.dim(0) != s.h ||
        !same_shape(gy, y))
        return declined();
    Array g_gates = Array::empty(y.dims(), TypeNum<T>::value), h_grad = copy_of(gh);
    if (!g_gates || !h_grad) return nullptr;
    bool relu = PyObject_IsTrue(args[4]);
    {
        Unlocked unlocked;
        NETWORK_BEST(rnn_backward<T>)(s, gy.data<T>(), w.data<T>(), y.data<T>(), relu,
                                      h_grad.data<T>(), g_gates.data<T>());
    }
    return results(g_gates, h_grad);
}
NETWORK_FLOATS(rnn_steps_backward, 0)

template <class T>
static PyObject *lstm_cell_(PyObject *const *args) {
    Array gates, c;
    if (!take<T>(args[0], gates) || !take<T>(args[1], c) || gates.ndim() != c.ndim() ||
        c.ndim() < 1)
        return declined();
    npy_intp h = c.dim(c.ndim() - 1), n = h ? c.size() / h : 0;
    if (!n || gates.dim(c.ndim() - 1) != 4 * h || gates.size() != 4 * c.size()) return declined();
    int type = TypeNum<T>::value;
    Array out = Array::empty(c.dims(), type), cells = Array::empty(c.dims(), type),
          act = Array::empty(gates.dims(), type);
    if (!out || !cells || !act) return nullptr;
    {
        Unlocked unlocked;
        NETWORK_BEST(lstm_cells<T>)(n, h, gates.data<T>(), c.data<T>(), out.data<T>(),
                                    cells.data<T>(), act.data<T>());
    }
    return results(out, cells, act);
}
NETWORK_FLOATS(lstm_cell, 0)

template <class T>
static PyObject *lstm_cell_backward_(PyObject *const *args) {
    Array gh, gc, act, c, now;
    if (!take<T>(args[0], gh) || !take<T>(args[1], gc) || !take<T>(args[2], act) ||
        !take<T>(args[3], c) || !take<T>(args[4], now) || !same_shape(gh, c) ||
        !same_shape(gc, c) || !same_shape(now, c) || c.ndim() < 1)
        return declined();
    npy_intp h = c.dim(c.ndim() - 1), n = h ? c.size() / h : 0;
    if (!n || act.size() != 4 * c.size()) return declined();
    int type = TypeNum<T>::value;
    Array g_gates = Array::empty(act.dims(), type), g_c = Array::empty(c.dims(), type);
    if (!g_gates || !g_c) return nullptr;
    {
        Unlocked unlocked;
        NETWORK_BEST(lstm_cells_backward<T>)(n, h, gh.data<T>(), gc.data<T>(), act.data<T>(),
                                             c.data<T>(), now.data<T>(), g_gates.data<T>(),
                                             g_c.data<T>());
    }
    return results(g_gates, g_c);
}
NETWORK_FLOATS(lstm_cell_backward, 0)

template <class T>
static PyObject *gru_cell_(PyObject *const *args) {
    Array gi, gs, state;
    if (!take<T>(args[0], gi) || !take<T>(args[1], gs) || !take<T>(args[2], state) ||
        !same_shape(gi, gs) || gi.ndim() != state.ndim() || state.ndim() < 1)
        return declined();
    npy_intp h = state.dim(state.ndim() - 1), n = h ? state.size() / h : 0;
    if (!n || gi.dim(state.ndim() - 1) != 3 * h || gi.size() != 3 * state.size()) return declined();
    std::vector<npy_intp> shape = state.dims();
    shape.back() = 4 * h;
    int type = TypeNum<T>::value;
    Array out = Array::empty(state.dims(), type), act = Array::empty(shape, type);
    if (!out || !act) return nullptr;
    {
        Unlocked unlocked;
        NETWORK_BEST(gru_cells<T>)(n, h, gi.data<T>(), gs.data<T>(), state.data<T>(), out.data<T>(),
                                   act.data<T>());
    }
    return results(out, act);
}
NETWORK_FLOATS(gru_cell, 0)

template <class T>
static PyObject *gru_cell_backward_(PyObject *const *args) {
    Array g, act, state;
    if (!take<T>(args[0], g) || !take<T>(args[1], act) || !take<T>(args[2], state) ||
        !same_shape(g, state) || state.ndim() < 1)
        return declined();
    npy_intp h = state.dim(state.ndim() - 1), n = h ? state.size() / h : 0;
    if (!n || act.size() != 4 * state.size()) return declined();
    std::vector<npy_intp> shape = state.dims();
    shape.back() = 3 * h;
    int type = TypeNum<T>::value;
    Array gi = Array::empty(shape, type), gs = Array::empty(shape, type),
          g_state = Array::empty(state.dims(), type);
    if (!gi || !gs || !g_state) return nullptr;
    {
        Unlocked unlocked;
        NETWORK_BEST(gru_cells_backward<T>)(n, h, g.data<T>(), act.data<T>(), state.data<T>(),
                                            gi.data<T>(), gs.data<T>(), g_state.data<T>());
    }
    return results(gi, gs, g_state);
}
NETWORK_FLOATS(gru_cell_backward, 0)

static PyMethodDef methods[] = {
    NETWORK_METHOD(lstm_cell, 2),  NETWORK_METHOD(lstm_cell_backward, 5),
    NETWORK_METHOD(gru_cell, 3),   NETWORK_METHOD(gru_cell_backward, 3),
    NETWORK_METHOD(lstm_steps, 5), NETWORK_METHOD(lstm_steps_backward, 8),
    NETWORK_METHOD(gru_steps, 5),  NETWORK_METHOD(gru_steps_backward, 7),
    NETWORK_METHOD(rnn_steps, 5),  NETWORK_METHOD(rnn_steps_backward, 6),
    {nullptr, nullptr, 0, nullptr}};

}  // namespace network

int register_network_recurrent(PyObject *module) {
    return PyModule_AddFunctions(module, network::methods);
}

#else

int register_network_recurrent(PyObject *) { return 0; }

#endif
