// Sums, products, means, extremes, and what is true of all or any.
#include "kernels/reduction/reductions.h"

namespace {

template <class T>
CLONES bool any_true(const T *x, npy_intp n) {
    int found = 0;
    for (npy_intp i = 0; i < n; i++) found |= is_true(widen(x[i]));
    return found;
}
template <class T>
CLONES bool any_false(const T *x, npy_intp n) {
    int found = 0;
    for (npy_intp i = 0; i < n; i++) found |= !is_true(widen(x[i]));
    return found;
}
template <bool ANY, class T>
struct Quantifier {
    using Element = T;
    using Acc = uint8_t;
    using Part = Acc;
    using Result = std::conditional_t<std::is_same_v<T, uint8_t>, uint8_t, bool>;
    static Acc identity() { return !ANY; }
    static void row(const T *x, npy_intp n, Acc &a) {
        for (npy_intp i = 0; i < n && a == !ANY; i += 4096) {
            npy_intp m = std::min<npy_intp>(4096, n - i);
            if (ANY ? any_true(x + i, m) : any_false(x + i, m)) a = ANY;
        }
    }
    static void column(const T *x, npy_intp n, Acc *a) {
        for (npy_intp i = 0; i < n; i++) {
            bool truth = is_true(widen(x[i]));
            a[i] = ANY ? a[i] | truth : a[i] & truth;
        }
    }
    static void combine(Acc &a, Acc b) { a = ANY ? a | b : a & b; }
    static Result finish(Acc a, npy_intp) { return a; }
};
template <class T>
using Any = Quantifier<true, T>;
template <class T>
using All = Quantifier<false, T>;

template <class T>
CLONES npy_intp count_true(const T *x, npy_intp n) {
    npy_intp found = 0;
    for (npy_intp i = 0; i < n; i++) found += is_true(widen(x[i]));
    return found;
}
template <class T>
struct Count {
    using Element = T;
    using Acc = int64_t;
    using Part = Acc;
    using Result = int64_t;
    static Acc identity() { return 0; }
    static void row(const T *x, npy_intp n, Acc &a) { a += count_true(x, n); }
    static void column(const T *x, npy_intp n, Acc *a) {
        for (npy_intp i = 0; i < n; i++) a[i] += is_true(widen(x[i]));
    }
    static void combine(Acc &a, Acc b) { a += b; }
    static Acc finish(Acc a, npy_intp) { return a; }
};

// Sums that leave NaN out.
template <class T>
CLONES void row_sum_of_numbers(const T *x, npy_intp n, double &total) {
    for (npy_intp begin = 0; begin < n; begin += 1024) {
        npy_intp m = std::min<npy_intp>(1024, n - begin);
        const T *a = x + begin;
        Compute<T> s = 0;
        REDUCE(+ : s) for (npy_intp i = 0; i < m; i++) s += widen(a[i]) == widen(a[i]) ? widen(a[i]) : 0;
        total += double(s);
    }
}
template <class T>
CLONES void column_sum_of_numbers(const T *x, npy_intp n, Compute<T> *total) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) total[i] += widen(x[i]) == widen(x[i]) ? widen(x[i]) : 0;
}
template <class T>
struct SumOfNumbers : Sum<T> {
    using Four = void;
    using Short = void;
    static constexpr bool plain = false;
    static void row(const T *x, npy_intp n, double &a) { row_sum_of_numbers(x, n, a); }
    static void column(const T *x, npy_intp n, Compute<T> *a) { column_sum_of_numbers(x, n, a); }
};

// ---- choice by dtype ----------------------------------------------------------------------------

Reducer sums[DTYPES], products[DTYPES], means[DTYPES], maxima[DTYPES], minima[DTYPES], anys[DTYPES],
    alls[DTYPES], counts[DTYPES], nansums[DTYPES];

PyObject *sum(PyObject *const *a, Py_ssize_t n, PyObject *names) { return accumulate(sums, a, n, names); }
PyObject *prod(PyObject *const *a, Py_ssize_t n, PyObject *names) {
    return accumulate(products, a, n, names);
}
PyObject *mean(PyObject *const *a, Py_ssize_t n, PyObject *names) { return accumulate(means, a, n, names); }
PyObject *nansum(PyObject *const *a, Py_ssize_t n, PyObject *names) {
    return accumulate(nansums, a, n, names);
}

// The smallest and the largest.
PyObject *aminmax(PyObject *const *a, Py_ssize_t n, PyObject *names) {
    Request r;
    if (!read(r, a, n, names) || r.dtype || r.gone.size == 0 || !minima[r.type]) return not_here();
    PyObject *least = run(minima, r);
    if (!least) return nullptr;
    r.split();
    PyObject *most = run(maxima, r);
    return most ? Py_BuildValue("(NN)", least, most) : (Py_DECREF(least), nullptr);
}

// The sum of a matrix's diagonal.
PyObject *trace(PyObject *const *a, Py_ssize_t n, PyObject *names) {
    if (n != 1 || names || !is_plain(a[0]) || PyArray_NDIM((PyArrayObject *)a[0]) != 2) return not_here();
    PyObject *diagonal = PyArray_Diagonal((PyArrayObject *)a[0], 0, 0, 1);
    if (!diagonal) return nullptr;
    PyObject *total = sum(&diagonal, 1, nullptr);
    Py_DECREF(diagonal);
    return total;
}

}  // namespace

int register_reductions(PyObject *m) {
    enter<Sum>(sums, Bools{}), enter<Sum>(sums, Integers{}), enter<Sum>(sums, Floats{});
    enter<Product>(products, Bools{}), enter<Product>(products, Integers{});
    enter<Product>(products, Floats{});
    enter<Mean>(means, Floats{});
    enter<Max>(maxima, Bools{}), enter<Max>(maxima, Integers{}), enter<Max>(maxima, Floats{});
    enter<Min>(minima, Bools{}), enter<Min>(minima, Integers{}), enter<Min>(minima, Floats{});
    enter<Any>(anys, Bools{}), enter<Any>(anys, Integers{}), enter<Any>(anys, Floats{});
    enter<All>(alls, Bools{}), enter<All>(alls, Integers{}), enter<All>(alls, Floats{});
    enter<Count>(counts, Bools{}), enter<Count>(counts, Integers{}), enter<Count>(counts, Floats{});
    enter<Sum>(nansums, Bools{}), enter<Sum>(nansums, Integers{});
    enter<SumOfNumbers>(nansums, Floats{});
    static const struct {
        const char *name;
        Native function;
    } functions[] = {{"sum", sum}, {"prod", prod}, {"mean", mean}, {"nansum", nansum},
                     {"max", plain<maxima, true>}, {"min", plain<minima, true>},
                     {"amax", plain<maxima, true>}, {"amin", plain<minima, true>},
                     {"max_all", plain<maxima, true>}, {"min_all", plain<minima, true>},
                     {"aminmax", aminmax}, {"any", plain<anys, false>}, {"all", plain<alls, false>},
                     {"count_nonzero", plain<counts, false>}, {"trace", trace}};
    for (auto &f : functions)
        if (make_function(m, f.name, f.function)) return -1;
    return 0;
}
