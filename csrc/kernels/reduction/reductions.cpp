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
    for (npy_intp i = 0; i < n; i += 4096) {  // counters of four bytes: more of them are added at once
        npy_intp m = std::min<npy_intp>(4096, n - i);
        int32_t here = 0;
        for (npy_intp k = 0; k < m; k++) here += is_true(widen(x[i + k]));
        found += here;
    }
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
    using P = Compute<T>;
    total += sum_of_terms<double, P>(
        n, [x](npy_intp i) INLINE_LAMBDA { return widen(x[i]) == widen(x[i]) ? widen(x[i]) : P(0); });
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

// ---- complex ------------------------------------------------------------------------------------

// Real and imaginary parts take turns.
template <class T>
CLONES void complex_row_sum(const T *x, npy_intp n, double &re, double &im) {
#if NETWORK_VECTORS
    double found[2];
    vector_sums(x, 2 * n, found);
    re += found[0], im += found[1];
#else
    re += sum_of_terms<double, T>(n, [x](npy_intp i) INLINE_LAMBDA { return x[2 * i]; });
    im += sum_of_terms<double, T>(n, [x](npy_intp i) INLINE_LAMBDA { return x[2 * i + 1]; });
#endif
}
template <class T>
CLONES void complex_row_product(const Complex<T> *x, npy_intp n, Complex128 &total) {
    constexpr npy_intp wide = 16, chunk = 1024;
    for (; n > 0; x += chunk, n -= chunk) {
        npy_intp m = n < chunk ? n : chunk, i = 0;
        T re[wide], im[wide];
        for (npy_intp k = 0; k < wide; k++) re[k] = 1, im[k] = 0;
        auto take = [&](npy_intp k, Complex<T> y) {
            T whole = re[k] * y.re - im[k] * y.im;
            im[k] = re[k] * y.im + im[k] * y.re, re[k] = whole;
        };
        for (; i + wide <= m; i += wide)
            for (npy_intp k = 0; k < wide; k++) take(k, x[i + k]);
        for (npy_intp k = 0; i + k < m; k++) take(k, x[i + k]);
        for (npy_intp half = wide / 2; half; half /= 2)
            for (npy_intp k = 0; k < half; k++) take(k, {re[k + half], im[k + half]});
        total = total * Complex128{double(re[0]), double(im[0])};
    }
}

// An accumulator, which is made of a part and becomes one.
struct WideComplex : Complex128 {
    WideComplex() = default;
    WideComplex(double re, double im = 0) : Complex128{re, im} {}
    template <class T>
    WideComplex(Complex<T> x) : Complex128{double(x.re), double(x.im)} {}
    template <class T>
    operator Complex<T>() const { return {T(re), T(im)}; }
};

// Of parts in the elements' precision, which are columns of real numbers.
template <class C>
struct ComplexSum {
    using Real = decltype(C::re);
    using Element = C;
    using Acc = WideComplex;
    using Part = C;
    using Result = C;
    using Four = C;
    static Acc identity() { return 0; }
    static void row(const C *x, npy_intp n, Acc &a) { complex_row_sum((const Real *)x, n, a.re, a.im); }
    static void column(const C *x, npy_intp n, Part *a) { column_sum((const Real *)x, 2 * n, (Real *)a); }
    static void four(const C *x, npy_intp step, npy_intp n, Part *a) {
        column_sums((const Real *)x, step, 2 * n, (Real *)a);
    }
    static void combine(Acc &a, Acc b) { a.re += b.re, a.im += b.im; }
    static Result finish(Acc a, npy_intp) { return {Real(a.re), Real(a.im)}; }
};
template <class C>
struct ComplexMean : ComplexSum<C> {
    static C finish(WideComplex a, npy_intp n) {
        return ComplexSum<C>::finish({a.re / double(n), a.im / double(n)}, n);
    }
};
template <class C>
struct ComplexProduct {
    using Element = C;
    using Acc = Complex128;
    using Part = Acc;
    using Result = C;
    static Acc identity() { return {1, 0}; }
    static void row(const C *x, npy_intp n, Acc &a) { complex_row_product(x, n, a); }
    static void column(const C *x, npy_intp n, Acc *a) {
        for (npy_intp i = 0; i < n; i++) a[i] = a[i] * Acc{double(x[i].re), double(x[i].im)};
    }
    static void combine(Acc &a, Acc b) { a = a * b; }
    static Result finish(Acc a, npy_intp) { return {decltype(C::re)(a.re), decltype(C::re)(a.im)}; }
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
    if (!read(r, a, n, names) || r.dtype || r.gone.size == 0 || !minima[reduced_type(r)]) return not_here();
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
    enter<Sum>(sums, UsualIntegers{}), enter<Sum>(sums, ReducedFloats{});
    enter<Product>(products, UsualIntegers{});
    sums[B1] = reduce<Sum<Truth>>, products[B1] = reduce<Product<Truth>>;
    enter<Product>(products, ReducedFloats{});
    enter<Mean>(means, ReducedFloats{});
    enter<ComplexSum>(sums, Complexes{}), enter<ComplexProduct>(products, Complexes{});
    enter<ComplexMean>(means, Complexes{});
    enter<Max>(maxima, UsualIntegers{}), enter<Max>(maxima, ReducedFloats{});
    enter<Min>(minima, UsualIntegers{}), enter<Min>(minima, ReducedFloats{});
    using Whole = Types<uint8_t, int8_t, uint16_t, uint32_t, uint64_t>;  // others have their loops
    enter<Any>(anys, Whole{}), enter<Any>(anys, ReducedFloats{});
    enter<All>(alls, Whole{}), enter<All>(alls, ReducedFloats{});
    anys[B1] = maxima[B1] = reduce<Any<Truth>>, alls[B1] = minima[B1] = reduce<All<Truth>>;
    enter<Count>(counts, Whole{}), enter<Count>(counts, ReducedFloats{});
    for (Reducer *table : {anys, alls, counts})
        for (int size = 1; size < 4; size++) table[I1 + size] = table[U1 + size];
    counts[B1] = sums[B1];
    std::copy(sums, sums + F2, nansums);
    enter<SumOfNumbers>(nansums, ReducedFloats{});
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
