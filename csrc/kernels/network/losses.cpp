// Losses with their reduction, and their gradients: flambeau/kernels/network/losses.py.
#include "kernels/network/module.h"
#include "kernels/pointwise/vecmath.h"

namespace network {

namespace {

enum Reduction { NOT, AVERAGE, TOTAL };

// PyTorch's numbers of reductions.
bool take_reduction(PyObject *x, Reduction &to) {
    npy_intp number;
    if (!take_int(x, number) || number < NOT || number > TOTAL) return false;
    to = Reduction(number);
    return true;
}

// Losses as they are computed one by one: stored, or added up.
template <class T>
struct Results {
    Reduction reduction;
    Array array;
    double total = 0;

    Results(Reduction r, const std::vector<npy_intp> &shape) : reduction(r) {
        array = Array::empty(r == NOT ? shape : std::vector<npy_intp>(), TypeNum<T>::value);
    }
    INLINE void set(npy_intp i, T loss) {
        if (reduction == NOT) array.data<T>()[i] = loss;
        else total += double(loss);
    }
    PyObject *finish(double divisor) {
        if (reduction != NOT) *array.data<T>() = T(reduction == AVERAGE ? total / divisor : total);
        return array.release();
    }
};

// The gradient of each loss: one for all after a reduction.
template <class T>
struct Gradients {
    const T *g;
    npy_intp step;
    T divisor;
    Array array;

    bool read(PyObject *g_, Reduction reduction, npy_intp n, double divisor_) {
        if (!take<T>(g_, array)) return false;
        g = array.data<T>(), step = reduction == NOT, divisor = T(reduction == AVERAGE ? divisor_ : 1);
        return array.size() == (step ? n : 1);
    }
    INLINE T operator[](npy_intp i) const { return g[i * step] / divisor; }
};

// ---- negative log-likelihood --------------------------------------------------------------------

struct Classes {
    Array target, weight;
    npy_intp rows, classes, inner, ignored;

    template <class T>
    bool read(PyObject *target_, PyObject *weight_, PyObject *ignored_, const npy_intp *shape, int ndim) {
        if (!take<int64_t>(target_, target) || !take_or_none<T>(weight_, weight) ||
            !take_int(ignored_, ignored) || ndim < 2 || target.ndim() != ndim - 1 ||
            target.dim(0) != shape[0] || !std::equal(shape + 2, shape + ndim, target.shape() + 1))
            return false;
        rows = shape[0], classes = shape[1], inner = product(shape + 2, shape + ndim);
        if (weight && weight.size() != classes) return false;
        const int64_t *t = target.data<int64_t>();
        for (npy_intp i = 0; i < target.size(); i++)
            if (t[i] != ignored && (t[i] < 0 || t[i] >= classes)) return false;
        return true;
    }
    // Calls body(i, place in the input, weight) for each target that counts.
    template <class T, class Body>
    void each(Body body) const {
        const int64_t *t = target.data<int64_t>();
        const T *w = weight.data<T>();
        for (npy_intp row = 0, i = 0; row < rows; row++)
            for (npy_intp column = 0; column < inner; column++, i++) {
                if (t[i] == ignored) body(i, npy_intp(-1), T(0));
                else body(i, (row * classes + t[i]) * inner + column, w ? w[t[i]] : T(1));
            }
    }
};

// (log-probabilities, target, weight, reduction, ignore_index): the loss, and the weights' total,
// which a mean divides by
template <class T>
PyObject *nll_loss_forward_(PyObject *const *args) {
    Array x;
    Classes c;
    Reduction reduction;
    if (!take<T>(args[0], x) || !take_reduction(args[3], reduction) ||
        !c.read<T>(args[1], args[2], args[4], x.shape(), x.ndim()))
        return declined();
    Results<T> results_(reduction, c.target.dims());
    Array total = Array::empty({}, TypeNum<T>::value);
    if (!results_.array || !total) return nullptr;
    const T *data = x.data<T>();
    double divisor = 0;
    c.each<T>([&](npy_intp i, npy_intp at, T weight) {
        results_.set(i, at < 0 ? T(0) : -data[at] * weight);
        divisor += double(weight);
    });
    *total.data<T>() = reduction == NOT ? T(0) : T(divisor);
    Array loss(results_.finish(double(T(divisor))));
    return results(loss, total);
}
NETWORK_FLOATS(nll_loss_forward, 0)

// (grad, input, target, weight, total, reduction, ignore_index)
template <class T>
PyObject *nll_loss_backward_(PyObject *const *args) {
    Classes c;
    Array x, total;
    Reduction reduction;
    Gradients<T> g;
    if (!take<T>(args[1], x) || !take_reduction(args[5], reduction) ||
        !c.read<T>(args[2], args[3], args[6], x.shape(), x.ndim()) || !take<T>(args[4], total) ||
        total.size() != 1 || !g.read(args[0], reduction, c.target.size(), double(*total.data<T>())))
        return declined();
    Array found = Array::zeros(x.dims(), TypeNum<T>::value);
    if (!found) return nullptr;
    T *to = found.data<T>();
    c.each<T>([&](npy_intp i, npy_intp at, T weight) {
        if (at >= 0) to[at] = -g[i] * weight;
    });
    return found.release();
}
NETWORK_FLOATS(nll_loss_backward, 1)

// ---- margins ------------------------------------------------------------------------------------

// Rows of scores with one class each.
template <class T>
struct Margins {
    Array x, target, weight;
    npy_intp rows, classes, power;
    double margin;
    Reduction reduction;

    // (x, target, weight, p, margin, reduction)
    bool read(PyObject *const *args) {
        if (!take<T>(args[0], x) || !take<int64_t>(args[1], target) ||
            !take_or_none<T>(args[2], weight) || !take_int(args[3], power) || !take_float(args[4], margin) ||
            !take_reduction(args[5], reduction) || power < 1 || power > 2)
            return false;
        classes = x.ndim() ? x.dim(x.ndim() - 1) : 1;
        if (!classes || x.ndim() > 2 || target.ndim() > 1) return false;
        rows = x.size() / classes;
        if (target.size() != rows || (weight && weight.size() != classes)) return false;
        for (npy_intp i = 0; i < rows; i++)
            if (target.data<int64_t>()[i] < 0 || target.data<int64_t>()[i] >= classes) return false;
        return true;
    }
};

template <class T>
PyObject *multi_margin_loss_(PyObject *const *args) {
    Margins<T> m;
    if (!m.read(args)) return declined();
    Results<T> results(m.reduction, m.x.ndim() == 2 ? std::vector<npy_intp>{m.rows} : m.target.dims());
    if (!results.array) return nullptr;
    const T *x = m.x.template data<T>(), *weight = m.weight.template data<T>();
    const int64_t *target = m.target.template data<int64_t>();
    for (npy_intp r = 0; r < m.rows; r++, x += m.classes) {
        T loss = 0;
        for (npy_intp i = 0; i < m.classes; i++) {
            T z = T(m.margin) - x[target[r]] + x[i];
            if (i == target[r] || !(z > 0)) continue;
            T each = m.power == 1 ? z : z * z;
            loss += weight ? each * weight[target[r]] : each;
        }
        results.set(r, loss / T(m.classes));
    }
    return results.finish(double(m.rows));
}
NETWORK_FLOATS(multi_margin_loss, 0)

// (grad, x, target, weight, p, margin, reduction)
template <class T>
PyObject *multi_margin_loss_backward_(PyObject *const *args) {
    Margins<T> m;
    Gradients<T> g;
    if (!m.read(args + 1) || !g.read(args[0], m.reduction, m.rows, double(m.rows))) return declined();
    Array found = Array::zeros(m.x.dims(), TypeNum<T>::value);
    if (!found) return nullptr;
    const T *x = m.x.template data<T>(), *weight = m.weight.template data<T>();
    const int64_t *target = m.target.template data<int64_t>();
    T *to = found.template data<T>();
    for (npy_intp r = 0; r < m.rows; r++, x += m.classes, to += m.classes) {
        T share = g[r] / T(m.classes) * (weight ? weight[target[r]] : T(1)), own = 0;
        for (npy_intp i = 0; i < m.classes; i++) {
            T z = T(m.margin) - x[target[r]] + x[i];
            if (i == target[r] || !(z > 0)) continue;
            to[i] = m.power == 1 ? share : 2 * share * z;
            own -= to[i];
        }
        to[target[r]] = own;
    }
    return found.release();
}
NETWORK_FLOATS(multi_margin_loss_backward, 1)

// Rows of scores with a list of classes each, which ends at the first -1.
template <class T>
struct Labels {
    Array x, target;
    npy_intp rows, classes;
    Reduction reduction;

    bool read(PyObject *x_, PyObject *target_, PyObject *reduction_) {
        if (!take<T>(x_, x) || !take<int64_t>(target_, target) || !take_reduction(reduction_, reduction) ||
            x.ndim() > 2 || !same_shape(x, target))
            return false;
        classes = x.ndim() ? x.dim(x.ndim() - 1) : 1;
        if (!classes) return false;
        rows = x.size() / classes;
        for (npy_intp i = 0; i < target.size(); i++)
            if (target.data<int64_t>()[i] < -1 || target.data<int64_t>()[i] >= classes) return false;
        return true;
    }
    std::vector<npy_intp> shape() const {
        return x.ndim() ? std::vector<npy_intp>(x.shape(), x.shape() + x.ndim() - 1)
                        : std::vector<npy_intp>();
    }
    // Calls body(label, other class, how far the other is within the margin) where that is positive.
    template <class Body>
    void each(npy_intp row, std::vector<char> &is_target, Body body) const {
        const T *scores = x.data<T>() + row * classes;
        const int64_t *labels = target.data<int64_t>() + row * classes;
        npy_intp n = 0;
        std::fill(is_target.begin(), is_target.end(), 0);
        for (; n < classes && labels[n] >= 0; n++) is_target[labels[n]] = 1;
        for (npy_intp k = 0; k < n; k++)
            for (npy_intp i = 0; i < classes; i++) {
                T z = 1 - (scores[labels[k]] - scores[i]);
                if (!is_target[i] && z > 0) body(labels[k], i, z);
            }
    }
};

// (x, target, reduction): the loss, and which classes are targets
template <class T>
PyObject *multilabel_margin_loss_forward_(PyObject *const *args) {
    Labels<T> l;
    if (!l.read(args[0], args[1], args[2])) return declined();
    Results<T> results_(l.reduction, l.shape());
    Array marks = Array::empty(l.x.dims(), TypeNum<T>::value);
    if (!results_.array || !marks) return nullptr;
    std::vector<char> is_target(l.classes);
    for (npy_intp r = 0; r < l.rows; r++) {
        T loss = 0;
        l.each(r, is_target, [&](int64_t, npy_intp, T z) { loss += z; });
        results_.set(r, loss / T(l.classes));
        std::copy(is_target.begin(), is_target.end(), marks.template data<T>() + r * l.classes);
    }
    Array loss(results_.finish(double(l.rows)));
    return results(loss, marks);
}
NETWORK_FLOATS(multilabel_margin_loss_forward, 0)

// (grad, x, target, which classes are targets, reduction)
template <class T>
PyObject *multilabel_margin_loss_backward_(PyObject *const *args) {
    Labels<T> l;
    Gradients<T> g;
    if (!l.read(args[1], args[2], args[4]) || !g.read(args[0], l.reduction, l.rows, double(l.rows))) return declined();
    Array found = Array::zeros(l.x.dims(), TypeNum<T>::value);
    if (!found) return nullptr;
    std::vector<char> is_target(l.classes);
    for (npy_intp r = 0; r < l.rows; r++) {
        T share = g[r] / T(l.classes), *to = found.template data<T>() + r * l.classes;
        l.each(r, is_target, [&](int64_t label, npy_intp other, T) {
            to[label] -= share, to[other] += share;
        });
    }
    return found.release();
}
NETWORK_FLOATS(multilabel_margin_loss_backward, 1)

// ---- element by element --------------------------------------------------------------------------

// `value` is the loss of x and y, with a number, or with a factor of an element; `slope` its
// derivative by x, which lies by rows whatever it is made of, or as that does.
struct Squared {
    static constexpr bool is_costly = false, has_factor = false, slopes_by_rows = true;
    template <class T>
    static INLINE T value(T x, T y, T) { return (x - y) * (x - y); }
    template <class T>
    static INLINE T slope(T x, T y, T) { return T(2) * (x - y); }
};
template <class T>
INLINE T clamped(T x, T limit) {  // to ±limit; NaN stays
    T r = x < -limit ? -limit : x;
    return r > limit ? limit : r;
}
struct SmoothL1 {
    static constexpr bool is_costly = false, has_factor = false, slopes_by_rows = true;
    template <class T>
    static INLINE T value(T x, T y, T beta) {
        T d = std::abs(x - y);
        return d < beta ? T(0.5) * d * d / beta : d - T(0.5) * beta;
    }
    template <class T>
    static INLINE T slope(T x, T y, T beta) { return clamped((x - y) / beta, T(1)); }
};
struct Huber {
    static constexpr bool is_costly = false, has_factor = false, slopes_by_rows = true;
    template <class T>
    static INLINE T value(T x, T y, T delta) {
        T d = std::abs(x - y);
        return d < delta ? T(0.5) * d * d : delta * (d - T(0.5) * delta);
    }
    template <class T>
    static INLINE T slope(T x, T y, T delta) { return clamped(x - y, delta); }
};
struct SoftMargin {  // infinite, as in PyTorch, where the exponential is
    static constexpr bool is_costly = true, has_factor = false, slopes_by_rows = false;
    template <class T>
    static INLINE T value(T x, T y, T) { return vec::log1p(vec::exp(-y * x)); }
    template <class T>
    static INLINE T slope(T x, T y, T) { return -y / (T(1) + vec::exp(x * y)); }
};
struct BinaryCrossEntropy {
    static constexpr bool is_costly = true, has_factor = false, slopes_by_rows = false;
    template <class T>
    static INLINE T value(T x, T y, T) {
        T one = vec::log(x), two = vec::log1p(-x);
        one = one < T(-100) ? T(-100) : one, two = two < T(-100) ? T(-100) : two;
        return (y - 1) * two - y * one;
    }
    template <class T>
    static INLINE T slope(T x, T y, T) {
        T spread = (1 - x) * x;
        return (x - y) / (spread < T(1e-12) ? T(1e-12) : spread);
    }
};
template <class T>
INLINE T softened(T x) {  // -log sigmoid(x)
    T below = x < T(0) ? -x : T(0);
    return below + vec::log1p(vec::exp(-std::abs(x)));
}
struct WithLogits {
    static constexpr bool is_costly = true, has_factor = true, slopes_by_rows = false;
    template <class T>
    static INLINE T value(T x, T y, T factor) {
        return (1 - y) * x + softened(x) * ((factor - 1) * y + 1);
    }
    template <class T>
    static INLINE T slope(T x, T y, T factor) {
        T scaled = factor * y;
        return (scaled + 1 - y) * vec::sigmoid(x) - scaled;
    }
};

bool lies_by_rows(PyObject *x) { return !PyArray_Check(x) || PyArray_IS_C_CONTIGUOUS((PyArrayObject *)x); }

// What a loss takes: scores and targets, perhaps a weight and a factor, all of one shape.
template <class T>
struct Pairs {
    Array x, y, weight, factor;
    npy_intp size;
    Reduction reduction;
    double number = 1;

    // (x, y, …optional tensors, reduction, …number). What gives a value for each element is left to the
    // caller where its operands lie otherwise than by rows: they say how the result lies.
    bool read(PyObject *const *args, int optional, bool has_number, bool each) {
        if (each && !(lies_by_rows(args[0]) && lies_by_rows(args[1]))) return false;
        if (!take<T>(args[0], x) || !take<T>(args[1], y) || !same_shape(x, y)) return false;
        for (int i = 0; i < optional; i++) {
            Array &a = i ? factor : weight;
            if (!take_or_none<T>(args[2 + i], a)) return false;
            if (a && !same_shape(a, x)) return false;
            if (args[2 + i] == Py_None) a = Array();
        }
        size = x.size();
        return take_reduction(args[2 + optional], reduction) &&
               (!has_number || (take_float(args[3 + optional], number) && number > 0));
    }
};

template <class F, class T>
CLONES void each_loss(npy_intp n, const T *x, const T *y, T p, T *r) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) r[i] = F::value(x[i], y[i], p);
}
template <class F, class T>
CLONES void each_slope(npy_intp n, const T *x, const T *y, T p, T *r) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) r[i] = F::slope(x[i], y[i], p);
}
// The same with a factor of its own for each pair.
template <class F, class T>
CLONES void each_loss_by(npy_intp n, const T *x, const T *y, const T *factor, T *r) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) r[i] = F::value(x[i], y[i], factor[i]);
}
template <class F, class T>
CLONES void each_slope_by(npy_intp n, const T *x, const T *y, const T *factor, T *r) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) r[i] = F::slope(x[i], y[i], factor[i]);
}

template <class T>
CLONES double sum_of(npy_intp n, const T *x) {
    double total = 0;
    NETWORK_SUM(total)
    for (npy_intp i = 0; i < n; i++) total += double(x[i]);
    return total;
}
template <class T>
CLONES void multiply(npy_intp n, const T *x, T *r) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) r[i] *= x[i];
}
template <class T>
CLONES void scale(npy_intp n, T factor, T *r) {
    for (npy_intp i = 0; i < n; i++) r[i] *= factor;
}

constexpr npy_intp BLOCK = 1024;  // elements that stay in the nearest cache between two loops

template <class T>
T *from(T *array, npy_intp i) { return array ? array + i : nullptr; }

// Losses or slopes of a block, with weights and factors, either of which may be null.
template <class F, bool slope, class T>
void weigh_block(npy_intp n, const T *x, const T *y, const T *weight, const T *factor, T p, T *r) {
    bool done = false;
    if constexpr (F::has_factor)
        if (factor) (slope ? each_slope_by<F, T> : each_loss_by<F, T>)(n, x, y, factor, r), done = true;
    if (!done) (slope ? each_slope<F, T> : each_loss<F, T>)(n, x, y, p, r);
    if (weight) multiply(n, weight, r);
}

template <class F, class T>
CLONES double quick_total(npy_intp n, const T *x, const T *y, T p) {
    double total = 0;
    NETWORK_SUM(total)
    for (npy_intp i = 0; i < n; i++) total += double(F::value(x[i], y[i], p));
    return total;
}
template <class F, class T>
CLONES void quick_slope(npy_intp n, T share, const T *x, const T *y, T p, T *r) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) r[i] = share * F::slope(x[i], y[i], p);
}

// The sum of losses; each goes to `r` too, if that is given. The costly ones are computed first and added
// up then, by loops that they have for other ends anyway.
template <class F, class T>
double total_loss(npy_intp n, const T *x, const T *y, const T *weight, const T *factor, T p, T *r) {
    if constexpr (!F::is_costly)
        if (!r) return quick_total<F>(n, x, y, p);
    double total = 0;
    T values[BLOCK];
    for (npy_intp i = 0; i < n; i += BLOCK) {
        npy_intp m = std::min(BLOCK, n - i);
        T *to = r ? r + i : values;
        weigh_block<F, false>(m, x + i, y + i, from(weight, i), from(factor, i), p, to);
        total += sum_of(m, to);
    }
    return total;
}

template <class T>
bool within_unit(const Array &a) {
    const T *x = a.data<T>();
    for (npy_intp i = 0; i < a.size(); i++)
        if (!(x[i] >= 0 && x[i] <= 1)) return false;
    return true;
}

template <class F, int optional, bool has_number, class T>
PyObject *pair_loss(PyObject *const *args) {
    Pairs<T> p;
    Reduction reduction;
    if (!take_reduction(args[2 + optional], reduction) || !p.read(args, optional, has_number, reduction == NOT))
        return declined();
    if (std::is_same<F, BinaryCrossEntropy>::value && !(within_unit<T>(p.x) && within_unit<T>(p.y)))
        return declined();
    Results<T> results(p.reduction, p.x.dims());
    if (!results.array) return nullptr;
    const T *x = p.x.template data<T>(), *y = p.y.template data<T>();
    const T *weight = p.weight.template data<T>(), *factor = p.factor.template data<T>();
    if (p.reduction == NOT && !weight && !factor) {
        T *to = results.array.template data<T>();
        Unlocked unlocked(p.size >= PARALLEL_FROM);
        parallel_for(p.size, PARALLEL_FROM / 2, [&](int64_t begin, int64_t end) {
            each_loss<F>(end - begin, x + begin, y + begin, T(p.number), to + begin);
        });
    } else {  // in pieces that do not depend on the number of threads
        constexpr npy_intp piece = PARALLEL_FROM / 2;
        T *to = p.reduction == NOT ? results.array.template data<T>() : nullptr;
        std::vector<double> totals((p.size + piece - 1) / piece);
        Unlocked unlocked(p.size >= PARALLEL_FROM);
        parallel_for(
            npy_intp(totals.size()), 1,
            [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; i++) {
                    npy_intp at = i * piece, n = std::min(piece, p.size - at);
                    totals[i] = total_loss<F>(n, x + at, y + at, from(weight, at), from(factor, at), T(p.number),
                                              from(to, at));
                }
            },
            1);
        for (double total : totals) results.total += total;
    }
    return results.finish(double(p.size));
}

// (grad, what the loss takes)
template <class F, int optional, bool has_number, class T>
PyObject *pair_loss_backward(PyObject *const *args) {
    Pairs<T> p;
    Gradients<T> g;
    if (!p.read(args + 1, optional, has_number, !F::slopes_by_rows) || !g.read(args[0], p.reduction, p.size, double(p.size)))
        return declined();
    Array found = Array::empty(p.x.dims(), TypeNum<T>::value);
    if (!found) return nullptr;
    const T *x = p.x.template data<T>(), *y = p.y.template data<T>();
    const T *weight = p.weight.template data<T>(), *factor = p.factor.template data<T>();
    T *to = found.template data<T>();
    Unlocked unlocked(p.size >= PARALLEL_FROM);
    parallel_for(p.size, PARALLEL_FROM / 2, [&](int64_t begin, int64_t end) {
        if constexpr (!F::is_costly)
            if (!g.step)
                return quick_slope<F>(end - begin, g[0], x + begin, y + begin, T(p.number), to + begin);
        for (npy_intp i = begin; i < end; i += BLOCK) {
            npy_intp n = std::min<npy_intp>(BLOCK, end - i);
            weigh_block<F, true>(n, x + i, y + i, from(weight, i), from(factor, i), T(p.number), to + i);
            if (g.step) multiply(n, g.g + i, to + i);
            else scale(n, g[0], to + i);
        }
    });
    return found.release();
}

#define PAIR_LOSS(name, F, optional, has_number)                                               \
    template <class T>                                                                         \
    PyObject *name##_(PyObject *const *args) {                                                 \
        return pair_loss<F, optional, has_number, T>(args);                                    \
    }                                                                                          \
    NETWORK_FLOATS(name, 0)                                                                    \
    template <class T>                                                                         \
    PyObject *name##_backward_(PyObject *const *args) {                                        \
        return pair_loss_backward<F, optional, has_number, T>(args);                           \
    }                                                                                          \
    NETWORK_FLOATS(name##_backward, 1)

PAIR_LOSS(mse_loss, Squared, 0, false)
PAIR_LOSS(smooth_l1_loss, SmoothL1, 0, true)
PAIR_LOSS(huber_loss, Huber, 0, true)
PAIR_LOSS(soft_margin_loss, SoftMargin, 0, false)
PAIR_LOSS(binary_cross_entropy, BinaryCrossEntropy, 1, false)
PAIR_LOSS(binary_cross_entropy_with_logits, WithLogits, 2, false)

PyMethodDef methods[] = {NETWORK_METHOD(nll_loss_forward, 5),
                         NETWORK_METHOD(nll_loss_backward, 7),
                         NETWORK_METHOD(multi_margin_loss, 6),
                         NETWORK_METHOD(multi_margin_loss_backward, 7),
                         NETWORK_METHOD(multilabel_margin_loss_forward, 3),
                         NETWORK_METHOD(multilabel_margin_loss_backward, 5),
                         NETWORK_METHOD(mse_loss, 3),
                         NETWORK_METHOD(mse_loss_backward, 4),
                         NETWORK_METHOD(smooth_l1_loss, 4),
                         NETWORK_METHOD(smooth_l1_loss_backward, 5),
                         NETWORK_METHOD(huber_loss, 4),
                         NETWORK_METHOD(huber_loss_backward, 5),
                         NETWORK_METHOD(soft_margin_loss, 3),
                         NETWORK_METHOD(soft_margin_loss_backward, 4),
                         NETWORK_METHOD(binary_cross_entropy, 4),
                         NETWORK_METHOD(binary_cross_entropy_backward, 5),
                         NETWORK_METHOD(binary_cross_entropy_with_logits, 5),
                         NETWORK_METHOD(binary_cross_entropy_with_logits_backward, 6),
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

}  // namespace network

int register_network_losses(PyObject *module) {
    return PyModule_AddFunctions(module, network::methods);
}
