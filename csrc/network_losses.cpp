// Losses with their reduction, and their gradients: flambeau/kernels/losses.py.
#include "network_module.h"
#include "vecmath.h"

namespace network {

namespace {

enum Reduction { NOT, AVERAGE, TOTAL };

bool take_reduction(PyObject *x, Reduction &to) {
    if (!PyUnicode_Check(x)) return false;
    to = PyUnicode_CompareWithASCIIString(x, "mean") == 0  ? AVERAGE
         : PyUnicode_CompareWithASCIIString(x, "sum") == 0 ? TOTAL
                                                           : NOT;
    return to != NOT || PyUnicode_CompareWithASCIIString(x, "none") == 0;
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
        for (npy_intp i = 0, n = target.size(); i < n; i++) {
            if (t[i] == ignored) body(i, npy_intp(-1), T(0));
            else body(i, (i / inner * classes + t[i]) * inner + i % inner, w ? w[t[i]] : T(1));
        }
    }
};

// (log-probabilities, target, weight, reduction, ignore_index): the loss, and what a mean divides by
template <class T>
PyObject *nll_loss_reduced_(PyObject *const *args) {
    Array x;
    Classes c;
    Reduction reduction;
    if (!take<T>(args[0], x) || !take_reduction(args[3], reduction) ||
        !c.read<T>(args[1], args[2], args[4], x.shape(), x.ndim()))
        return declined();
    Results<T> results(reduction, c.target.dims());
    if (!results.array) return nullptr;
    const T *data = x.data<T>();
    double divisor = 0;
    c.each<T>([&](npy_intp i, npy_intp at, T weight) {
        results.set(i, at < 0 ? T(0) : -data[at] * weight);
        divisor += double(weight);
    });
    PyObject *loss = results.finish(double(T(divisor)));
    if (reduction == AVERAGE) return Py_BuildValue("(Nd)", loss, divisor);
    return Py_BuildValue("(NO)", loss, Py_None);
}
NETWORK_FLOATS(nll_loss_reduced, 0)

// (grad, target, weight, divisor, shape, ignore_index)
template <class T>
PyObject *nll_loss_reduced_backward_(PyObject *const *args) {
    Classes c;
    std::vector<npy_intp> shape;
    Gradients<T> g;
    double divisor = 1;
    if (!take_ints(args[4], shape) || !c.read<T>(args[1], args[2], args[5], shape.data(), int(shape.size())) ||
        (args[3] != Py_None && !take_float(args[3], divisor)))
        return declined();
    bool each = PyArray_NDIM((PyArrayObject *)args[0]) > 0;
    if (!g.read(args[0], each ? NOT : AVERAGE, c.target.size(), divisor)) return declined();
    Array found = Array::zeros(shape, TypeNum<T>::value);
    if (!found) return nullptr;
    T *to = found.data<T>();
    c.each<T>([&](npy_intp i, npy_intp at, T weight) {
        if (at >= 0) to[at] = -g[i] * weight;
    });
    return found.release();
}
NETWORK_FLOATS(nll_loss_reduced_backward, 0)

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

    // (x, target, reduction)
    bool read(PyObject *const *args) {
        if (!take<T>(args[0], x) || !take<int64_t>(args[1], target) || !take_reduction(args[2], reduction) ||
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

template <class T>
PyObject *multilabel_margin_loss_(PyObject *const *args) {
    Labels<T> l;
    if (!l.read(args)) return declined();
    Results<T> results(l.reduction, l.shape());
    if (!results.array) return nullptr;
    std::vector<char> is_target(l.classes);
    for (npy_intp r = 0; r < l.rows; r++) {
        T loss = 0;
        l.each(r, is_target, [&](int64_t, npy_intp, T z) { loss += z; });
        results.set(r, loss / T(l.classes));
    }
    return results.finish(double(l.rows));
}
NETWORK_FLOATS(multilabel_margin_loss, 0)

// (grad, x, target, reduction)
template <class T>
PyObject *multilabel_margin_loss_backward_(PyObject *const *args) {
    Labels<T> l;
    Gradients<T> g;
    if (!l.read(args + 1) || !g.read(args[0], l.reduction, l.rows, double(l.rows))) return declined();
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

// ---- binary cross entropy -----------------------------------------------------------------------

// Scores, targets and optional factors, all of one shape.
template <class T>
struct Pairs {
    Array x, y, weight, factor;
    npy_intp size;
    Reduction reduction;

    bool read(PyObject *x_, PyObject *y_, PyObject *weight_, PyObject *factor_, PyObject *reduction_) {
        if (!take<T>(x_, x) || !take<T>(y_, y) || !take_or_none<T>(weight_, weight) ||
            !take_or_none<T>(factor_, factor) || !take_reduction(reduction_, reduction))
            return false;
        size = x.size();
        return same_shape(x, y) && (!weight || same_shape(weight, x)) && (!factor || same_shape(factor, x));
    }
    T weight_of(npy_intp i) const { return weight ? weight.data<T>()[i] : T(1); }
};

template <class T>
bool within_unit(const Array &a) {
    const T *x = a.data<T>();
    for (npy_intp i = 0; i < a.size(); i++)
        if (!(x[i] >= 0 && x[i] <= 1)) return false;
    return true;
}

// (x, y, weight, reduction)
template <class T>
PyObject *binary_cross_entropy_(PyObject *const *args) {
    Pairs<T> p;
    if (!p.read(args[0], args[1], args[2], Py_None, args[3]) || !within_unit<T>(p.x) || !within_unit<T>(p.y))
        return declined();
    Results<T> results(p.reduction, p.x.dims());
    if (!results.array) return nullptr;
    const T *x = p.x.template data<T>(), *y = p.y.template data<T>();
    for (npy_intp i = 0; i < p.size; i++) {
        T one = std::max(std::log(x[i]), T(-100)), two = std::max(std::log1p(-x[i]), T(-100));
        results.set(i, ((y[i] - 1) * two - y[i] * one) * p.weight_of(i));
    }
    return results.finish(double(p.size));
}
NETWORK_FLOATS(binary_cross_entropy, 0)

// (grad, x, y, weight, reduction, needs)
template <class T>
PyObject *binary_cross_entropy_backward_(PyObject *const *args) {
    Pairs<T> p;
    Gradients<T> g;
    if (!p.read(args[1], args[2], args[3], Py_None, args[4]) ||
        !g.read(args[0], p.reduction, p.size, double(p.size)) || !PyList_Check(args[5]))
        return declined();
    Array gx, gy;
    if (PyList_GET_ITEM(args[5], 0) == Py_True) gx = Array::empty(p.x.dims(), TypeNum<T>::value);
    if (PyList_GET_ITEM(args[5], 1) == Py_True) gy = Array::empty(p.x.dims(), TypeNum<T>::value);
    const T *x = p.x.template data<T>(), *y = p.y.template data<T>();
    for (npy_intp i = 0; i < p.size; i++) {
        T share = g[i] * p.weight_of(i);
        if (gx) gx.template data<T>()[i] = share * (x[i] - y[i]) / std::max((1 - x[i]) * x[i], T(1e-12));
        if (gy) gy.template data<T>()[i] = share * (std::log1p(-x[i]) - std::log(x[i]));
    }
    return results(gx, gy);
}
NETWORK_FLOATS(binary_cross_entropy_backward, 1)

// -log sigmoid(x)
template <class T>
INLINE T softened(T x) {
    return std::max(-x, T(0)) + std::log1p(std::exp(-std::abs(x)));
}

// (x, y, weight, pos_weight, reduction)
template <class T>
PyObject *binary_cross_entropy_with_logits_(PyObject *const *args) {
    Pairs<T> p;
    if (!p.read(args[0], args[1], args[2], args[3], args[4])) return declined();
    Results<T> results(p.reduction, p.x.dims());
    if (!results.array) return nullptr;
    const T *x = p.x.template data<T>(), *y = p.y.template data<T>(), *factor = p.factor.template data<T>();
    for (npy_intp i = 0; i < p.size; i++) {
        T negative = softened(x[i]);
        if (factor) negative *= (factor[i] - 1) * y[i] + 1;
        results.set(i, ((1 - y[i]) * x[i] + negative) * p.weight_of(i));
    }
    return results.finish(double(p.size));
}
NETWORK_FLOATS(binary_cross_entropy_with_logits, 0)

// (grad, x, y, weight, pos_weight, reduction, needs)
template <class T>
PyObject *binary_cross_entropy_with_logits_backward_(PyObject *const *args) {
    Pairs<T> p;
    Gradients<T> g;
    if (!p.read(args[1], args[2], args[3], args[4], args[5]) ||
        !g.read(args[0], p.reduction, p.size, double(p.size)) || !PyList_Check(args[6]))
        return declined();
    Array gx, gy;
    if (PyList_GET_ITEM(args[6], 0) == Py_True) gx = Array::empty(p.x.dims(), TypeNum<T>::value);
    if (PyList_GET_ITEM(args[6], 1) == Py_True) gy = Array::empty(p.x.dims(), TypeNum<T>::value);
    const T *x = p.x.template data<T>(), *y = p.y.template data<T>(), *factor = p.factor.template data<T>();
    for (npy_intp i = 0; i < p.size; i++) {
        T share = g[i] * p.weight_of(i), sigmoid = 1 / (1 + std::exp(-x[i]));
        T scaled = factor ? factor[i] * y[i] : y[i];
        if (gx) gx.template data<T>()[i] = share * (factor ? (scaled + 1 - y[i]) * sigmoid - scaled
                                                           : sigmoid - y[i]);
        if (gy) gy.template data<T>()[i] = share * (factor ? (factor[i] - 1) * softened(x[i]) - x[i] : -x[i]);
    }
    return results(gx, gy);
}
NETWORK_FLOATS(binary_cross_entropy_with_logits_backward, 1)

PyMethodDef methods[] = {NETWORK_METHOD(nll_loss_reduced, 5),
                         NETWORK_METHOD(nll_loss_reduced_backward, 6),
                         NETWORK_METHOD(multi_margin_loss, 6),
                         NETWORK_METHOD(multi_margin_loss_backward, 7),
                         NETWORK_METHOD(multilabel_margin_loss, 3),
                         NETWORK_METHOD(multilabel_margin_loss_backward, 4),
                         NETWORK_METHOD(binary_cross_entropy, 4),
                         NETWORK_METHOD(binary_cross_entropy_backward, 6),
                         NETWORK_METHOD(binary_cross_entropy_with_logits, 5),
                         NETWORK_METHOD(binary_cross_entropy_with_logits_backward, 7),
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

}  // namespace network

int register_network_losses(PyObject *module) {
    return PyModule_AddFunctions(module, network::methods);
}
