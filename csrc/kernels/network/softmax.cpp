// Softmax and its kin, and cross entropy: flambeau/kernels/network/softmax.py.
//
// Along the last axis a row is worked through while it is in the cache. Along another axis
// neighbouring columns are taken BLOCK at a time, one vector lane each.
#include "kernels/network/module.h"
#include "kernels/pointwise/vecmath.h"

namespace network {

namespace {

constexpr npy_intp BLOCK = 64;

template <class T>
constexpr T LOWEST = -std::numeric_limits<T>::infinity();

template <class T>
INLINE T largest_of(npy_intp n, const T *x) {
    T m = LOWEST<T>;
    NETWORK_MAX(m)
    for (npy_intp i = 0; i < n; i++) m = x[i] > m ? x[i] : m;
    return m;
}

template <class T>
CLONES void softmax_rows(npy_intp n, npy_intp rows, const T *x, T *y) {
    for (npy_intp r = 0; r < rows; r++, x += n, y += n) {
        T m = largest_of(n, x), sum = 0;
        NETWORK_SUM(sum)
        for (npy_intp i = 0; i < n; i++) {
            T e = fast_exp(x[i] - m);
            y[i] = e;
            sum += e;
        }
        T scale = 1 / sum;
        INDEPENDENT
        for (npy_intp i = 0; i < n; i++) y[i] *= scale;
    }
}

template <class T>
CLONES void log_softmax_rows(npy_intp n, npy_intp rows, const T *x, T *y) {
    for (npy_intp r = 0; r < rows; r++, x += n, y += n) {
        T m = largest_of(n, x), sum = 0;
        NETWORK_SUM(sum)
        for (npy_intp i = 0; i < n; i++) sum += fast_exp(x[i] - m);
        T log_sum = std::log(sum);
        INDEPENDENT
        for (npy_intp i = 0; i < n; i++) y[i] = x[i] - m - log_sum;
    }
}

// The maxima of `width` columns.
template <class T>
INLINE void column_maxima(npy_intp n, npy_intp inner, npy_intp width, const T *x, T *m) {
    for (npy_intp j = 0; j < width; j++) m[j] = LOWEST<T>;
    for (npy_intp i = 0; i < n; i++) {
        const T *row = x + i * inner;
        INDEPENDENT
        for (npy_intp j = 0; j < width; j++) m[j] = row[j] > m[j] ? row[j] : m[j];
    }
}

// The logarithms of the columns' sums of exp(x - m).
template <class T>
INLINE void column_logs(npy_intp n, npy_intp inner, npy_intp width, const T *x, const T *m, T *logs) {
    for (npy_intp j = 0; j < width; j++) logs[j] = 0;
    for (npy_intp i = 0; i < n; i++) {
        const T *row = x + i * inner;
        INDEPENDENT
        for (npy_intp j = 0; j < width; j++) logs[j] += fast_exp(row[j] - m[j]);
    }
    INDEPENDENT
    for (npy_intp j = 0; j < width; j++) logs[j] = vec::log(logs[j]);
}

template <class T>
CLONES void softmax_columns(npy_intp n, npy_intp inner, npy_intp width, const T *x, T *y) {
    T m[BLOCK], sum[BLOCK] = {};
    column_maxima(n, inner, width, x, m);
    for (npy_intp i = 0; i < n; i++) {
        const T *from = x + i * inner;
        T *to = y + i * inner;
        INDEPENDENT
        for (npy_intp j = 0; j < width; j++) {
            T e = fast_exp(from[j] - m[j]);
            to[j] = e;
            sum[j] += e;
        }
    }
    for (npy_intp j = 0; j < width; j++) sum[j] = 1 / sum[j];
    for (npy_intp i = 0; i < n; i++) {
        T *to = y + i * inner;
        INDEPENDENT
        for (npy_intp j = 0; j < width; j++) to[j] *= sum[j];
    }
}

template <class T>
CLONES void log_softmax_columns(npy_intp n, npy_intp inner, npy_intp width, const T *x, T *y) {
    T m[BLOCK], sum[BLOCK];
    column_maxima(n, inner, width, x, m);
    column_logs(n, inner, width, x, m, sum);
    for (npy_intp i = 0; i < n; i++) {
        const T *from = x + i * inner;
        T *to = y + i * inner;
        INDEPENDENT
        for (npy_intp j = 0; j < width; j++) to[j] = from[j] - m[j] - sum[j];
    }
}

template <class T>
CLONES void softmax_backward_rows(npy_intp n, npy_intp rows, const T *g, const T *y, T *to) {
    for (npy_intp r = 0; r < rows; r++, g += n, y += n, to += n) {
        T sum = 0;
        NETWORK_SUM(sum)
        for (npy_intp i = 0; i < n; i++) sum += g[i] * y[i];
        INDEPENDENT
        for (npy_intp i = 0; i < n; i++) to[i] = y[i] * (g[i] - sum);
    }
}

template <class T>
CLONES void log_softmax_backward_rows(npy_intp n, npy_intp rows, const T *g, const T *y, T *to) {
    for (npy_intp r = 0; r < rows; r++, g += n, y += n, to += n) {
        T sum = 0;
        NETWORK_SUM(sum)
        for (npy_intp i = 0; i < n; i++) sum += g[i];
        INDEPENDENT
        for (npy_intp i = 0; i < n; i++) to[i] = g[i] - fast_exp(y[i]) * sum;
    }
}

template <class T>
CLONES void softmax_backward_columns(npy_intp n, npy_intp inner, npy_intp width, const T *g,
                                     const T *y, T *to) {
    T sum[BLOCK] = {};
    for (npy_intp i = 0; i < n; i++) INDEPENDENT
    for (npy_intp j = 0; j < width; j++) sum[j] += g[i * inner + j] * y[i * inner + j];
    for (npy_intp i = 0; i < n; i++) INDEPENDENT
    for (npy_intp j = 0; j < width; j++)
        to[i * inner + j] = y[i * inner + j] * (g[i * inner + j] - sum[j]);
}

template <class T>
CLONES void log_softmax_backward_columns(npy_intp n, npy_intp inner, npy_intp width, const T *g,
                                         const T *y, T *to) {
    T sum[BLOCK] = {};
    for (npy_intp i = 0; i < n; i++) INDEPENDENT
    for (npy_intp j = 0; j < width; j++) sum[j] += g[i * inner + j];
    for (npy_intp i = 0; i < n; i++) INDEPENDENT
    for (npy_intp j = 0; j < width; j++)
        to[i * inner + j] = g[i * inner + j] - fast_exp(y[i * inner + j]) * sum[j];
}

// rows(first, count) where the axis is the last, else columns(offset, width) for blocks of columns.
template <class Rows, class Columns>
void along(const Axis &a, Rows rows, Columns columns) {
    npy_intp grain = std::max<npy_intp>(1, PARALLEL_FROM / 4 / (a.n + 1));
    if (a.inner == 1) {
        parallel_for(
            a.outer, grain, [&](int64_t first, int64_t last) { rows(first, last - first); }, 1);
        return;
    }
    npy_intp blocks = (a.inner + BLOCK - 1) / BLOCK, width = std::min(a.inner, BLOCK);
    grain = std::max<npy_intp>(1, PARALLEL_FROM / 4 / (a.n * width + 1));
    parallel_for(
        a.outer * blocks, grain,
        [&](int64_t first, int64_t last) {
            for (npy_intp b = first; b < last; b++) {
                npy_intp column = b % blocks * BLOCK;
                columns(b / blocks * a.n * a.inner + column, std::min(BLOCK, a.inner - column));
            }
        },
        1);
}

template <class T>
using Forward = void (*)(npy_intp, npy_intp, const T *, T *);
template <class T>
using ForwardColumns = void (*)(npy_intp, npy_intp, npy_intp, const T *, T *);

template <class T>
PyObject *forward(PyObject *const *args, Forward<T> rows, ForwardColumns<T> columns) {
    Array x;
    Axis a;
    if (!take<T>(args[0], x) || !a.read_row(x, args[1])) return declined();
    Array y = Array::empty(x.dims(), TypeNum<T>::value);
    if (!y) return nullptr;
    if (!x.size()) return y.release();
    Unlocked unlocked;
    const T *from = x.data<T>();
    T *to = y.data<T>();
    along(
        a,
        [&](npy_intp first, npy_intp count) {
            rows(a.n, count, from + first * a.n, to + first * a.n);
        },
        [&](npy_intp at, npy_intp width) { columns(a.n, a.inner, width, from + at, to + at); });
    return y.release();
}

template <class T>
using Backward = void (*)(npy_intp, npy_intp, const T *, const T *, T *);
template <class T>
using BackwardColumns = void (*)(npy_intp, npy_intp, npy_intp, const T *, const T *, T *);

template <class T>
PyObject *backward(PyObject *const *args, Backward<T> rows, BackwardColumns<T> columns) {
    Array g, y;
    Axis a;
    if (!take<T>(args[0], g) || !take<T>(args[1], y) || !same_shape(g, y) || !a.read_row(y, args[2]))
        return declined();
    Array result = Array::empty(y.dims(), TypeNum<T>::value);
    if (!result) return nullptr;
    if (!y.size()) return result.release();
    Unlocked unlocked;
    const T *from = g.data<T>(), *value = y.data<T>();
    T *to = result.data<T>();
    along(
        a,
        [&](npy_intp first, npy_intp count) {
            rows(a.n, count, from + first * a.n, value + first * a.n, to + first * a.n);
        },
        [&](npy_intp at, npy_intp width) {
            columns(a.n, a.inner, width, from + at, value + at, to + at);
        });
    return result.release();
}

template <class T>
PyObject *softmax_(PyObject *const *args) {
    return forward<T>(args, softmax_rows<T>, softmax_columns<T>);
}
NETWORK_FLOATS(softmax, 0)

template <class T>
PyObject *log_softmax_(PyObject *const *args) {
    return forward<T>(args, log_softmax_rows<T>, log_softmax_columns<T>);
}
NETWORK_FLOATS(log_softmax, 0)

template <class T>
PyObject *softmax_backward_(PyObject *const *args) {
    return backward<T>(args, softmax_backward_rows<T>, softmax_backward_columns<T>);
}
NETWORK_FLOATS(softmax_backward, 1)

template <class T>
PyObject *log_softmax_backward_(PyObject *const *args) {
    return backward<T>(args, log_softmax_backward_rows<T>, log_softmax_backward_columns<T>);
}
NETWORK_FLOATS(log_softmax_backward, 1)

// ---- logsumexp
// ------------------------------------------------------------------------------------

template <class T>
CLONES void logsumexp_rows(npy_intp n, npy_intp rows, const T *x, T *y) {
    for (npy_intp r = 0; r < rows; r++, x += n) {
        T m = largest_of(n, x), sum = 0;
        m = std::isinf(m) ? 0 : m;
        NETWORK_SUM(sum)
        for (npy_intp i = 0; i < n; i++) sum += fast_exp(x[i] - m);
        y[r] = std::log(sum) + m;
    }
}

template <class T>
CLONES void logsumexp_columns(npy_intp n, npy_intp inner, npy_intp width, const T *x, T *y) {
    T m[BLOCK], logs[BLOCK];
    column_maxima(n, inner, width, x, m);
    for (npy_intp j = 0; j < width; j++) m[j] = std::isinf(m[j]) ? 0 : m[j];
    column_logs(n, inner, width, x, m, logs);
    for (npy_intp j = 0; j < width; j++) y[j] = logs[j] + m[j];
}

template <class T>
PyObject *logsumexp_(PyObject *const *args) {
    Array x;
    Axis a;
    PyObject *axis = args[1];
    if (PyTuple_Check(axis) && PyTuple_GET_SIZE(axis) == 1) axis = PyTuple_GET_ITEM(axis, 0);
    int keep = PyObject_IsTrue(args[2]);
    if (!take<T>(args[0], x) || !a.read_row(x, axis) || !x.size()) return declined();
    std::vector<npy_intp> shape = x.dims();
    npy_intp which = PyLong_AsSsize_t(axis);
    if (which < 0) which += x.ndim();
    if (keep && x.ndim())
        shape[which] = 1;
    else if (x.ndim())
        shape.erase(shape.begin() + which);
    Array y = Array::empty(shape, TypeNum<T>::value);
    if (!y) return nullptr;
    Unlocked unlocked;
    const T *from = x.data<T>();
    T *to = y.data<T>();
    along(
        a,
        [&](npy_intp first, npy_intp count) {
            logsumexp_rows(a.n, count, from + first * a.n, to + first);
        },
        [&](npy_intp at, npy_intp width) {
            npy_intp outer = at / (a.n * a.inner), column = at % (a.n * a.inner);
            logsumexp_columns(a.n, a.inner, width, from + at, to + outer * a.inner + column);
        });
    return y.release();
}
NETWORK_FLOATS(logsumexp, 0)

// ---- cross entropy
// --------------------------------------------------------------------------------

template <class T>
struct Loss {
    npy_intp classes;
    const T *x, *weight;
    const int64_t *target;
    int64_t ignored;
    T smoothing;
};

// Losses and statistics of rows first to last.
template <class T>
CLONES void loss_rows(const Loss<T> &l, npy_intp first, npy_intp last, T *losses, T *largest,
                      T *logs) {
    npy_intp n = l.classes;
    for (npy_intp r = first; r < last; r++) {
        const T *x = l.x + r * n;
        T m = largest_of(n, x), sum = 0, plain = 0;
        NETWORK_SUM(sum)
        for (npy_intp i = 0; i < n; i++) sum += fast_exp(x[i] - m);
        T log_sum = std::log(sum), loss = 0;
        largest[r] = m;
        logs[r] = log_sum;
        int64_t t = l.target[r];
        if (t != l.ignored) {
            loss = (log_sum - (x[t] - m)) * (l.weight ? l.weight[t] : T(1));
            if (l.smoothing != 0) {
                if (l.weight) {
                    NETWORK_SUM(plain)
                    for (npy_intp i = 0; i < n; i++) plain += (log_sum - (x[i] - m)) * l.weight[i];
                } else {
                    NETWORK_SUM(plain)
                    for (npy_intp i = 0; i < n; i++) plain += log_sum - (x[i] - m);
                }
                loss = (1 - l.smoothing) * loss + l.smoothing / T(n) * plain;
            }
        }
        losses[r] = loss;
    }
}

// g: the gradient of each loss, g_step 0 where all share one.
template <class T>
CLONES void loss_backward_rows(const Loss<T> &l, npy_intp first, npy_intp last, const T *g,
                               npy_intp g_step, const T *largest, const T *logs, T weights, T *to) {
    npy_intp n = l.classes;
    for (npy_intp r = first; r < last; r++) {
        const T *x = l.x + r * n;
        T *row = to + r * n;
        int64_t t = l.target[r];
        if (t == l.ignored) {
            std::memset(row, 0, sizeof(T) * n);
            continue;
        }
        T grad = g[r * g_step], m = largest[r], log_sum = logs[r];
        T main = grad * (1 - l.smoothing) * (l.weight ? l.weight[t] : T(1)),
          smooth = grad * l.smoothing / T(n);
        T scale = main + smooth * weights;
        if (l.smoothing == 0) {
            INDEPENDENT
            for (npy_intp i = 0; i < n; i++) row[i] = fast_exp(x[i] - m - log_sum) * scale;
        } else if (l.weight) {
            INDEPENDENT
            for (npy_intp i = 0; i < n; i++)
                row[i] = fast_exp(x[i] - m - log_sum) * scale - smooth * l.weight[i];
        } else {
            INDEPENDENT
            for (npy_intp i = 0; i < n; i++) row[i] = fast_exp(x[i] - m - log_sum) * scale - smooth;
        }
        row[t] -= main;
    }
}

template <class T>
bool read_loss(Loss<T> &l, PyObject *x_, PyObject *target_, PyObject *weight_, PyObject *ignored_,
               PyObject *smoothing_, Array &x, Array &target, Array &weight) {
    npy_intp ignored;
    double smoothing;
    if (!take<T>(x_, x) || !take<int64_t>(target_, target) || !take_or_none<T>(weight_, weight) ||
        !take_int(ignored_, ignored) || !take_float(smoothing_, smoothing) || x.ndim() != 2 ||
        target.ndim() != 1 || target.size() != x.dim(0) || x.dim(1) < 1 ||
        (weight && weight.size() != x.dim(1)))
        return false;
    l = {x.dim(1), x.data<T>(), weight.data<T>(), target.data<int64_t>(), ignored, T(smoothing)};
    for (npy_intp r = 0; r < x.dim(0); r++)
        if (l.target[r] != ignored && uint64_t(l.target[r]) >= uint64_t(l.classes)) {
            PyErr_Format(PyExc_IndexError, "Target %lld is out of bounds.", (long long)l.target[r]);
            return false;
        }
    return true;
}

template <class T>
PyObject *cross_entropy_(PyObject *const *args) {
    Array x, target, weight;
    Loss<T> l;
    if (!read_loss(l, args[0], args[1], args[2], args[3], args[4], x, target, weight))
        return declined();
    npy_intp rows = x.dim(0);
    Array losses = Array::empty({rows}, TypeNum<T>::value),
          stats = Array::empty({2, rows}, TypeNum<T>::value);
    if (!losses || !stats) return nullptr;
    {
        Unlocked unlocked;
        T *to = losses.data<T>(), *largest = stats.data<T>();
        parallel_for(rows, std::max<npy_intp>(1, PARALLEL_FROM / 4 / l.classes),
                     [&](int64_t first, int64_t last) {
                         loss_rows(l, first, last, to, largest, largest + rows);
                     });
    }
    return results(losses, stats);
}
NETWORK_FLOATS(cross_entropy, 0)

template <class T>
PyObject *cross_entropy_backward_(PyObject *const *args) {
    Array g, x, target, stats, weight;
    Loss<T> l;
    if (!take<T>(args[0], g) || !take<T>(args[3], stats) ||
        !read_loss(l, args[1], args[2], args[4], args[5], args[6], x, target, weight))
        return declined();
    npy_intp rows = x.dim(0), g_step = g.ndim() == 0 ? 0 : 1;
    if (g.ndim() > 1 || (g_step && g.size() != rows) || stats.size() != 2 * rows) return declined();
    Array result = Array::empty(x.dims(), TypeNum<T>::value);
    if (!result) return nullptr;
    Unlocked unlocked;
    T weights = T(l.classes);
    if (l.weight) {
        weights = 0;
        for (npy_intp i = 0; i < l.classes; i++) weights += l.weight[i];
    }
    const T *from = g.data<T>(), *largest = stats.data<T>();
    T *to = result.data<T>();
    parallel_for(rows, std::max<npy_intp>(1, PARALLEL_FROM / 4 / l.classes),
                 [&](int64_t first, int64_t last) {
                     loss_backward_rows(l, first, last, from, g_step, largest, largest + rows,
                                        weights, to);
                 });
    return result.release();
}
NETWORK_FLOATS(cross_entropy_backward, 1)

PyMethodDef methods[] = {NETWORK_METHOD(softmax, 2),
                         NETWORK_METHOD(log_softmax, 2),
                         NETWORK_METHOD(softmax_backward, 3),
                         NETWORK_METHOD(log_softmax_backward, 3),
                         NETWORK_METHOD(logsumexp, 3),
                         NETWORK_METHOD(cross_entropy, 5),
                         NETWORK_METHOD(cross_entropy_backward, 7),
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

}  // namespace network

int register_network_softmax(PyObject *module) {
    return PyModule_AddFunctions(module, network::methods);
}
