// Elementwise updates of many arrays in one call: rules of optimizers, averages of weights, scaling.
// Their counterparts are the `update` methods in `flambeau/optim/`, whose roundings they share (this
// file is compiled without contracted products and sums).
#include <atomic>
#include <cstring>

#include "kernels/network/array_lists.h"

namespace {

constexpr int MOST_KEPT = 3, MOST_NUMBERS = 8;

// A stretch of one parameter with its gradient, what a rule keeps for it, and the rule's numbers.
template <class T>
struct Stretch {
    T *p;
    const T *grad;
    T *kept[MOST_KEPT];
    T number[MOST_NUMBERS];
    T sign, decay, shrink;
    bool decays;
    npy_intp n;
};

// element(p, g, a, b, c) for each element; g has the sign and the weight decay, a, b and c are kept.
template <int KEPT, bool DECAYS, class T, class Element>
INLINE void loop(const Stretch<T> &s, Element element) {
    T *p = s.p, *a = s.kept[0], *b = s.kept[1], *c = s.kept[2];
    const T *grad = s.grad;
    T sign = s.sign, decay = s.decay, shrink = s.shrink, none = 0;
    npy_intp n = s.n;
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        T x = p[i] * shrink, g = sign * grad[i];
        if (DECAYS) g = g + decay * p[i];
        if constexpr (KEPT == 0) element(x, g, none, none, none);
        if constexpr (KEPT == 1) element(x, g, a[i], none, none);
        if constexpr (KEPT == 2) element(x, g, a[i], b[i], none);
        if constexpr (KEPT == 3) element(x, g, a[i], b[i], c[i]);
        p[i] = x;
    }
}

template <int KEPT, class T, class Element>
INLINE void each(const Stretch<T> &s, Element element) {
    if (s.decays) loop<KEPT, true>(s, element);
    else loop<KEPT, false>(s, element);
}

// ---- the rules: element by element, as their `update` says -----------------------------------------

template <class T, bool CENTERED, bool MOMENTUM>
struct RMSpropElement {
    T alpha, rest, eps, inertia, rate;
    INLINE void operator()(T &x, T g, T &square, T &second, T &third) const {
        T &mean = second, &buffer = CENTERED ? third : second;
        square = square * alpha + rest * (g * g);
        T spread = square;
        if (CENTERED) {
            mean = mean + (g - mean) * rest;
            spread = square - mean * mean;
        }
        T step = g / (std::sqrt(spread) + eps);
        if (MOMENTUM) step = buffer = buffer * inertia + step;
        x = x - rate * step;
    }
};

struct RMSprop {   // kept: square_avg, grad_avg if centered, momentum_buffer if there is momentum
    template <class T>
    static INLINE void run(const Stretch<T> &s) {
        const T *k = s.number;
        T alpha = k[0], rest = k[1], eps = k[2], inertia = k[3], rate = k[4];
        bool centered = k[5] != 0, momentum = inertia > 0;
        if (centered && momentum) each<3>(s, RMSpropElement<T, true, true>{alpha, rest, eps, inertia, rate});
        else if (centered) each<2>(s, RMSpropElement<T, true, false>{alpha, rest, eps, inertia, rate});
        else if (momentum) each<2>(s, RMSpropElement<T, false, true>{alpha, rest, eps, inertia, rate});
        else each<1>(s, RMSpropElement<T, false, false>{alpha, rest, eps, inertia, rate});
    }
};

template <class T>
struct AdagradElement {
    T rate, eps;
    INLINE void operator()(T &x, T g, T &total, T &, T &) const {
        total = total + g * g;
        x = x - rate * (g / (std::sqrt(total) + eps));
    }
};

template <class T>
struct AdadeltaElement {
    T rho, rest, eps, rate;
    INLINE void operator()(T &x, T g, T &square, T &moved, T &) const {
        square = square * rho + rest * (g * g);
        T delta = std::sqrt(moved + eps) / std::sqrt(square + eps) * g;
        moved = moved * rho + rest * (delta * delta);
        x = x - rate * delta;
    }
};

template <class T>
struct AdamaxElement {
    T rest, beta2, eps, rate;
    INLINE void operator()(T &x, T g, T &mean, T &highest, T &) const {
        mean = mean + (g - mean) * rest;
        T before = beta2 * highest, now = std::abs(g) + eps;
        highest = before > now || before != before ? before : now;
        x = x - rate * (mean / highest);
    }
};

template <class T>
struct NAdamElement {
    T rest1, beta2, rest2, eps, correction, rate, rate_next;
    INLINE void operator()(T &x, T g, T &mean, T &square, T &) const {
        mean = mean + (g - mean) * rest1;
        square = square * beta2 + rest2 * (g * g);
        T denominator = std::sqrt(square / correction) + eps;
        x = x - rate * (g / denominator);
        x = x - rate_next * (mean / denominator);
    }
};

template <class T, bool RECTIFIED>
struct RAdamElement {
    T rest1, beta2, rest2, eps, correction, rectify, rate;
    INLINE void operator()(T &x, T g, T &mean, T &square, T &) const {
        mean = mean + (g - mean) * rest1;
        square = square * beta2 + rest2 * (g * g);
        T step = mean / correction;
        if (RECTIFIED) step = step * (rectify / (std::sqrt(square) + eps));
        x = x - rate * step;
    }
};

struct RAdam {
    template <class T>
    static INLINE void run(const Stretch<T> &s) {
        const T *k = s.number;
        if (k[5] != 0) each<2>(s, RAdamElement<T, true>{k[0], k[1], k[2], k[3], k[4], k[5], k[6]});
        else each<2>(s, RAdamElement<T, false>{k[0], k[1], k[2], k[3], k[4], k[5], k[6]});
    }
};

template <class T, bool FIRST>
struct ASGDElement {
    T keep, rate, share;
    INLINE void operator()(T &x, T g, T &mean, T &, T &) const {
        x = x * keep - rate * g;
        mean = FIRST ? x : mean + (x - mean) * share;
    }
};

struct ASGD {
    template <class T>
    static INLINE void run(const Stretch<T> &s) {
        const T *k = s.number;
        if (k[2] == 1) each<1>(s, ASGDElement<T, true>{k[0], k[1], k[2]});
        else each<1>(s, ASGDElement<T, false>{k[0], k[1], k[2]});
    }
};

template <class T>
struct RpropElement {
    T less, more, least, most;
    INLINE void operator()(T &x, T g, T &before, T &size, T &) const {
        T agree = g * before;
        T now = size * (agree > 0 ? more : agree < 0 ? less : T(1));
        now = now < least ? least : now;
        now = now > most ? most : now;
        g = agree < 0 ? T(0) : g;
        size = now;
        x = x - (g > 0 ? now : g < 0 ? -now : T(0));
        before = g;
    }
};

template <class T, bool NEAR>
struct LerpElement {
    T weight, rest;
    INLINE void operator()(T &x, T g, T &, T &, T &) const {
        x = NEAR ? x + weight * (g - x) : g - (g - x) * rest;
    }
};

struct Lerp {
    template <class T>
    static INLINE void run(const Stretch<T> &s) {
        T weight = s.number[0];
        if (std::abs(weight) < T(0.5)) each<0>(s, LerpElement<T, true>{weight, s.number[1]});
        else each<0>(s, LerpElement<T, false>{weight, s.number[1]});
    }
};

template <class T>
struct ClampElement {
    T least, most;
    INLINE void operator()(T &x, T, T &, T &, T &) const {
        T y = x < least ? least : x;
        x = y > most ? most : y;
    }
};

template <class T>
struct ScaleElement {
    T factor;
    INLINE void operator()(T &x, T, T &, T &, T &) const { x = x * factor; }
};

template <class T>
struct AddElement {
    T alpha;
    INLINE void operator()(T &x, T g, T &, T &, T &) const { x = x + alpha * g; }
};

struct Adagrad {
    template <class T>
    static INLINE void run(const Stretch<T> &s) { each<1>(s, AdagradElement<T>{s.number[0], s.number[1]}); }
};
struct Adadelta {
    template <class T>
    static INLINE void run(const Stretch<T> &s) {
        each<2>(s, AdadeltaElement<T>{s.number[0], s.number[1], s.number[2], s.number[3]});
    }
};
struct Adamax {
    template <class T>
    static INLINE void run(const Stretch<T> &s) {
        each<2>(s, AdamaxElement<T>{s.number[0], s.number[1], s.number[2], s.number[3]});
    }
};
struct NAdam {
    template <class T>
    static INLINE void run(const Stretch<T> &s) {
        const T *k = s.number;
        each<2>(s, NAdamElement<T>{k[0], k[1], k[2], k[3], k[4], k[5], k[6]});
    }
};
struct Rprop {
    template <class T>
    static INLINE void run(const Stretch<T> &s) {
        each<2>(s, RpropElement<T>{s.number[0], s.number[1], s.number[2], s.number[3]});
    }
};
struct Clamp {
    template <class T>
    static INLINE void run(const Stretch<T> &s) { each<0>(s, ClampElement<T>{s.number[0], s.number[1]}); }
};
struct Scale {
    template <class T>
    static INLINE void run(const Stretch<T> &s) { each<0>(s, ScaleElement<T>{s.number[0]}); }
};
struct Add {
    template <class T>
    static INLINE void run(const Stretch<T> &s) { each<0>(s, AddElement<T>{s.number[0]}); }
};

// ---- the table of rules ----------------------------------------------------------------------------

#define RULE(name)                                                 \
    CLONES void update_##name(const Stretch<float> &s) { name::run(s); } \
    CLONES void update_##name(const Stretch<double> &s) { name::run(s); }
RULE(RMSprop)
RULE(Adagrad)
RULE(Adadelta)
RULE(Adamax)
RULE(NAdam)
RULE(RAdam)
RULE(ASGD)
RULE(Rprop)
RULE(Lerp)
RULE(Clamp)
RULE(Scale)
RULE(Add)

template <class T>
void update_Fill(const Stretch<T> &s) {
    if (s.number[0] == 0 && !std::signbit(s.number[0])) std::memset(s.p, 0, s.n * sizeof(T));
    else std::fill(s.p, s.p + s.n, s.number[0]);
}

template <class T>
void update_Copy(const Stretch<T> &s) { std::memmove(s.p, s.grad, s.n * sizeof(T)); }

struct Rule {
    const char *name;
    int most_kept, numbers;
    void (*in_single)(const Stretch<float> &);
    void (*in_double)(const Stretch<double> &);
    void run(const Stretch<float> &s) const { in_single(s); }
    void run(const Stretch<double> &s) const { in_double(s); }
};

const Rule RULES[] = {
    {"rmsprop", 3, 6, update_RMSprop, update_RMSprop}, {"adagrad", 1, 2, update_Adagrad, update_Adagrad},
    {"adadelta", 2, 4, update_Adadelta, update_Adadelta}, {"adamax", 2, 4, update_Adamax, update_Adamax},
    {"nadam", 2, 7, update_NAdam, update_NAdam}, {"radam", 2, 7, update_RAdam, update_RAdam},
    {"asgd", 1, 3, update_ASGD, update_ASGD}, {"rprop", 2, 4, update_Rprop, update_Rprop},
    {"lerp", 0, 2, update_Lerp, update_Lerp}, {"clamp", 0, 2, update_Clamp, update_Clamp},
    {"scale", 0, 1, update_Scale, update_Scale}, {"add", 0, 1, update_Add, update_Add},
    {"fill", 0, 1, update_Fill<float>, update_Fill<double>},
    {"copy", 0, 0, update_Copy<float>, update_Copy<double>},
};

// ---- from Python -----------------------------------------------------------------------------------

// The numbers of each parameter: a tuple of tuples, or one for all.
bool take_numbers(PyObject *given, size_t count, int each, std::vector<double> &numbers) {
    if (!PyList_CheckExact(given) && !PyTuple_CheckExact(given)) return false;
    size_t rows = PySequence_Fast_GET_SIZE(given);
    if (rows != 1 && rows != count) return false;
    for (size_t i = 0; i < rows; i++) {
        PyObject *row = PySequence_Fast_GET_ITEM(given, i);
        if (!PyTuple_CheckExact(row) || PyTuple_GET_SIZE(row) != each) return false;
        for (int k = 0; k < each; k++) {
            double value = PyFloat_AsDouble(PyTuple_GET_ITEM(row, k));
            if (value == -1 && PyErr_Occurred()) return PyErr_Clear(), false;
            numbers.push_back(value);
        }
    }
    return true;
}

struct Update {
    const Rule *rule;
    PyObject *params, *grads, *kept, *steps, *numbers;
    double decay, shrink;
    int maximize;

    template <class T>
    bool take(int type) const {
        Arrays p, g, state[MOST_KEPT];
        std::vector<PyArrayObject *> counts;
        std::vector<double> values;
        if (!p.take(params, type) || !g.take(grads, type) || !g.has_shapes_of(p) || !lie_apart(p, g, sizeof(T)))
            return false;
        if (!PyList_CheckExact(kept) && !PyTuple_CheckExact(kept)) return false;
        int lists = int(PySequence_Fast_GET_SIZE(kept));
        if (lists > rule->most_kept) return false;
        for (int k = 0; k < lists; k++)
            if (!state[k].take(PySequence_Fast_GET_ITEM(kept, k), type) || !state[k].fits(p)) return false;
        if (!take_numbers(numbers, p.sizes.size(), rule->numbers, values) ||
            !take_steps(steps, PySequence_Fast_GET_SIZE(steps) ? p.sizes.size() : 0, counts))
            return false;
        for (PyArrayObject *count : counts) advance(count);
        size_t width = rule->numbers, own = values.size() > width ? width : 0;
        Py_BEGIN_ALLOW_THREADS
        over_all(p.sizes, [&](int i, npy_intp begin, npy_intp end) {
            Stretch<T> s;
            s.p = (T *)p.data[i] + begin, s.grad = (const T *)g.data[i] + begin, s.n = end - begin;
            for (int k = 0; k < MOST_KEPT; k++) s.kept[k] = k < lists ? (T *)state[k].data[i] + begin : nullptr;
            for (size_t k = 0; k < width; k++) s.number[k] = T(values[i * own + k]);
            s.sign = T(maximize ? -1 : 1), s.decay = T(decay), s.shrink = T(shrink), s.decays = decay != 0;
            rule->run(s);
        });
        Py_END_ALLOW_THREADS
        return true;
    }
};

// update_arrays(rule, params, grads, kept, steps, numbers, weight_decay, shrink, maximize): False if
// nothing has been done.
PyObject *update_arrays(PyObject *, PyObject *args) {
    Update u;
    const char *name;
    if (!PyArg_ParseTuple(args, "sOOOOOddp", &name, &u.params, &u.grads, &u.kept, &u.steps, &u.numbers, &u.decay,
                          &u.shrink, &u.maximize))
        return nullptr;
    u.rule = nullptr;
    for (const Rule &rule : RULES)
        if (!std::strcmp(rule.name, name)) u.rule = &rule;
    if (!u.rule || (!PyList_CheckExact(u.steps) && !PyTuple_CheckExact(u.steps))) Py_RETURN_FALSE;
    int type = type_of(u.params);
    return PyBool_FromLong(type == NPY_FLOAT    ? u.take<float>(type)
                           : type == NPY_DOUBLE ? u.take<double>(type)
                                                : false);
}

// The sum of zero times each element: nan where one is not finite, else 0.
template <class T>
INLINE T not_finite(const T *x, npy_intp n) {
    T parts[16] = {};
    npy_intp i = 0;
    for (; i + 16 <= n; i += 16)
        for (int k = 0; k < 16; k++) parts[k] += x[i + k] * T(0);
    for (; i < n; i++) parts[0] += x[i] * T(0);
    T sum = 0;
    for (T part : parts) sum += part;
    return sum;
}
CLONES float find_not_finite(const float *x, npy_intp n) { return not_finite(x, n); }
CLONES double find_not_finite(const double *x, npy_intp n) { return not_finite(x, n); }

// all_finite(arrays): None if they are not dense and of one type.
PyObject *all_finite(PyObject *, PyObject *arrays) {
    int type = type_of(arrays);
    Arrays a;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || !a.take(arrays, type)) Py_RETURN_NONE;
    std::atomic<bool> found{false};
    Py_BEGIN_ALLOW_THREADS
    over_all(a.sizes, [&](int i, npy_intp begin, npy_intp end) {
        bool bad = type == NPY_FLOAT ? find_not_finite((const float *)a.data[i] + begin, end - begin) != 0
                                     : find_not_finite((const double *)a.data[i] + begin, end - begin) != 0;
        if (bad) found = true;
    });
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(!found);
}

PyMethodDef methods[] = {{"update_arrays", update_arrays, METH_VARARGS, nullptr},
                         {"all_finite", all_finite, METH_O, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

int register_update_rules(PyObject *module) { return PyModule_AddFunctions(module, methods); }
