// What reductions share: the array as kept and reduced dimensions, and the loops over them. Work is
// cut into pieces by the shape alone, never by the number of threads, so that a sum has the same bits
// on every machine of one kind.
#pragma once
#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernels/pointwise/complex.h"
#include "kernels/moving/copying.h"
#include "kernels/pointwise/kernel.h"
#include "parallel.h"
#include "kernels/pointwise/vecmath.h"
#include "kernels/reduction/vector_sums.h"

PyArrayObject *cast_array(PyArrayObject *x, DType to);

#if defined(_OPENMP)
#define PRAGMA(...) _Pragma(#__VA_ARGS__)
#define REDUCE(...) PRAGMA(omp simd reduction(__VA_ARGS__))
#define REDUCE2(FIRST, SECOND) PRAGMA(omp simd reduction(FIRST) reduction(SECOND))
#define REDUCE_FOUR(FIRST, B, C, D, FLAG) PRAGMA(omp simd reduction(FIRST, B, C, D) reduction(| : FLAG))
#else
#define REDUCE(...)
#define REDUCE2(FIRST, SECOND)
#define REDUCE_FOUR(FIRST, B, C, D, FLAG)
#endif

namespace {

// ---- what is reduced ----------------------------------------------------------------------------
// Op<T>: `Acc` the accumulator's type; `row` takes contiguous elements into one accumulator, `column`
// one element into each of several, of type `Part` (which may be narrower, for a few rows); `combine`
// joins two accumulators; `finish` gives the result.

template <class T>
using SumType = std::conditional_t<std::is_floating_point_v<Compute<T>>, double, uint64_t>;

// The sum of term(0) … term(n - 1). In each chunk four sums are formed side by side, because a
// processor adds several numbers in the time that one addition takes; they are joined in `Acc`.
template <class Acc, class P, class Term>
INLINE Acc sum_of_terms(npy_intp n, Term term) {
    constexpr npy_intp chunk = 4096, vector = 16;
    Acc total = 0;
    for (npy_intp begin = 0; begin < n; begin += chunk) {
        npy_intp end = n - begin < chunk ? n : begin + chunk, part = (end - begin) / 4 / vector * vector;
        npy_intp second = begin + part, third = second + part, fourth = third + part;
        P p = 0, q = 0, r = 0, s = 0;
        REDUCE(+ : p, q, r, s)
        for (npy_intp i = 0; i < part; i++)
            p += term(begin + i), q += term(second + i), r += term(third + i), s += term(fourth + i);
        REDUCE(+ : p)
        for (npy_intp i = begin + 4 * part; i < end; i++) p += term(i);
        total += (Acc(p) + Acc(q)) + (Acc(r) + Acc(s));
    }
    return total;
}

// What a chunk is summed in: the elements' precision; of small integers 32 bits, which it can't fill.
template <class T>
using ChunkType = std::conditional_t<std::is_floating_point_v<Compute<T>>, Compute<T>,
                                     std::conditional_t<sizeof(T) <= 2, int32_t, uint64_t>>;

template <class T>
constexpr bool has_vector_sum =
    NETWORK_VECTORS && (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, BFloat>);

template <class T>
CLONES void row_sum(const T *x, npy_intp n, SumType<T> &total) {
    using P = ChunkType<T>;
    if constexpr (has_vector_sum<T>) total += vector_sum(x, n);
    else total += sum_of_terms<SumType<T>, P>(n, [x](npy_intp i) INLINE_LAMBDA { return P(widen(x[i])); });
}
template <class T>
using PartType = std::conditional_t<std::is_floating_point_v<Compute<T>>, Compute<T>, uint64_t>;
template <class T>
CLONES void column_sum(const T *x, npy_intp n, PartType<T> *total) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) total[i] += PartType<T>(widen(x[i]));
}
// Of four rows, `step` bytes apart.
template <class T>
CLONES void column_sums(const T *x, npy_intp step, npy_intp n, PartType<T> *total) {
    using P = PartType<T>;
    auto row = [=](int i) { return (const T *)((const char *)x + i * step); };
    const T *a = x, *b = row(1), *c = row(2), *d = row(3);
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++)
        total[i] += (P(widen(a[i])) + P(widen(b[i]))) + (P(widen(c[i])) + P(widen(d[i])));
}


// The types whose loops are worth it.
template <class T>
constexpr bool turns_rows = std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int64_t>;

// Rows of up to so many elements are turned, so many rows at once.
constexpr npy_intp NARROW = 48;
inline npy_intp turned_at_once(npy_intp n) { return n <= 16 ? 192 : 64; }

// Sums of short rows, `step` bytes apart, each in one accumulator or a few side by side.
constexpr npy_intp SHORT_ROW = 1024;

template <class Op, npy_intp length, class T>
INLINE void fold_rows_of(const T *x, npy_intp step, npy_intp rows, typename Op::Part *found) {
    for (npy_intp r = 0; r < rows; r++, x = (const T *)((const char *)x + step)) {
        typename Op::Part folded = widen(x[0]);
        for (npy_intp i = 1; i < length; i++) folded = Op::fold(folded, typename Op::Part(widen(x[i])));
        found[r] = folded;
    }
}
// Of rows that are so short that the compiler writes them out; false: they are longer.
template <class Op, class T>
bool fold_shortest(const T *x, npy_intp step, npy_intp rows, npy_intp n, typename Op::Part *found) {
    switch (n) {
        case 1: return fold_rows_of<Op, 1>(x, step, rows, found), true;
        case 2: return fold_rows_of<Op, 2>(x, step, rows, found), true;
        case 3: return fold_rows_of<Op, 3>(x, step, rows, found), true;
        case 4: return fold_rows_of<Op, 4>(x, step, rows, found), true;
        case 5: return fold_rows_of<Op, 5>(x, step, rows, found), true;
        case 6: return fold_rows_of<Op, 6>(x, step, rows, found), true;
        case 7: return fold_rows_of<Op, 7>(x, step, rows, found), true;
        case 8: return fold_rows_of<Op, 8>(x, step, rows, found), true;
        default: return false;
    }
}
template <class T>
CLONES void row_sums(const T *x, npy_intp step, npy_intp rows, npy_intp n, PartType<T> *sums) {
    using P = PartType<T>;
    npy_intp row = 0;
    auto at = [=](npy_intp r) { return (const T *)((const char *)x + r * step); };
    bool wide = n * npy_intp(sizeof(T)) >= 768;  // then few at once, as they lie
    if constexpr (has_vector_sum<T>)
        for (; wide && row < rows; row++) sums[row] = P(vector_sum(at(row), n));
    for (; wide && row + 2 <= rows; row += 2) {
        const T *a = at(row), *b = at(row + 1);
        P p = 0, q = 0;
        REDUCE(+ : p, q)
        for (npy_intp i = 0; i < n; i++) p += P(widen(a[i])), q += P(widen(b[i]));
        sums[row] = p, sums[row + 1] = q;
    }
    for (; row + 4 <= rows; row += 4) {
        const T *a = at(row), *b = at(row + 1), *c = at(row + 2), *d = at(row + 3);
        P p = 0, q = 0, r = 0, s = 0;
        REDUCE(+ : p, q, r, s)
        for (npy_intp i = 0; i < n; i++)
            p += P(widen(a[i])), q += P(widen(b[i])), r += P(widen(c[i])), s += P(widen(d[i]));
        sums[row] = p, sums[row + 1] = q, sums[row + 2] = r, sums[row + 3] = s;
    }
    for (; row < rows; row++) {
        const T *a = at(row);
        P p = 0;
        REDUCE(+ : p)
        for (npy_intp i = 0; i < n; i++) p += P(widen(a[i]));
        sums[row] = p;
    }
}

template <class T>
struct Sum {
    using Element = T;
    using Acc = SumType<T>;
    using Part = PartType<T>;
    using Short = T;
    static INLINE Part fold(Part a, Part b) { return a + b; }
    static void rows(const T *x, npy_intp step, npy_intp count, npy_intp n, Part *sums) {
        if (!fold_shortest<Sum<T>>(x, step, count, n, sums)) row_sums(x, step, count, n, sums);
    }
    static constexpr bool plain = std::is_floating_point_v<T>;  // a part is a result as it is
    static Acc identity() { return 0; }
    static void row(const T *x, npy_intp n, Acc &a) { row_sum(x, n, a); }
    static void column(const T *x, npy_intp n, Part *a) { column_sum(x, n, a); }
    using Four = T;
    static void four(const T *x, npy_intp step, npy_intp n, Part *a) { column_sums(x, step, n, a); }
    static void combine(Acc &a, Acc b) { a += b; }
    using Result = std::conditional_t<std::is_floating_point_v<Compute<T>>, T, int64_t>;
    static auto finish(Acc a, npy_intp) {
        return std::conditional_t<std::is_same_v<Result, int64_t>, int64_t, Compute<Result>>(a);
    }
};
template <class T>
struct Mean : Sum<T> {
    static constexpr bool plain = false;
    static auto finish(double a, npy_intp n) { return Compute<T>(a / double(n)); }
};

template <class T>
CLONES void row_product(const T *x, npy_intp n, SumType<T> &total) {
    if (n <= 512) {
        PartType<T> p = 1;
        REDUCE(* : p)
        for (npy_intp i = 0; i < n; i++) p *= PartType<T>(widen(x[i]));
        total *= SumType<T>(p);
        return;
    }
    for (; n > 0; x += 1024, n -= 1024) {
        using P = PartType<T>;
        npy_intp m = n < 1024 ? n : 1024, part = m / 4;
        P p = 1, q = 1, r = 1, s = 1;
        REDUCE(* : p, q, r, s)
        for (npy_intp i = 0; i < part; i++)
            p *= P(widen(x[i])), q *= P(widen(x[part + i])), r *= P(widen(x[2 * part + i])),
                s *= P(widen(x[3 * part + i]));
        for (npy_intp i = 4 * part; i < m; i++) p *= P(widen(x[i]));
        total *= (SumType<T>(p) * SumType<T>(q)) * (SumType<T>(r) * SumType<T>(s));
    }
}
// Of short rows, `step` bytes apart, several at once.
template <class T>
CLONES void row_products(const T *x, npy_intp step, npy_intp rows, npy_intp n, PartType<T> *found) {
    using P = PartType<T>;
    npy_intp row = 0;
    auto at = [=](npy_intp r) { return (const T *)((const char *)x + r * step); };
    for (; row + 4 <= rows; row += 4) {
        const T *a = at(row), *b = at(row + 1), *c = at(row + 2), *d = at(row + 3);
        P p = 1, q = 1, r = 1, s = 1;
        REDUCE(* : p, q, r, s)
        for (npy_intp i = 0; i < n; i++)
            p *= P(widen(a[i])), q *= P(widen(b[i])), r *= P(widen(c[i])), s *= P(widen(d[i]));
        found[row] = p, found[row + 1] = q, found[row + 2] = r, found[row + 3] = s;
    }
    for (; row < rows; row++) {
        const T *a = at(row);
        P p = 1;
        REDUCE(* : p)
        for (npy_intp i = 0; i < n; i++) p *= P(widen(a[i]));
        found[row] = p;
    }
}
template <class T>
CLONES void column_product(const T *x, npy_intp n, PartType<T> *total) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) total[i] *= PartType<T>(widen(x[i]));
}
template <class T>
struct Product : Sum<T> {
    using Four = void;
    using Short = std::conditional_t<turns_rows<T>, T, void>;
    static INLINE PartType<T> fold(PartType<T> a, PartType<T> b) { return a * b; }
    static void rows(const T *x, npy_intp step, npy_intp count, npy_intp n, PartType<T> *found) {
        if (!fold_shortest<Product<T>>(x, step, count, n, found)) row_products(x, step, count, n, found);
    }
    using Acc = SumType<T>;
    using Part = PartType<T>;
    static constexpr bool plain = false;
    static Acc identity() { return 1; }
    static void row(const T *x, npy_intp n, Acc &a) { row_product(x, n, a); }
    static void column(const T *x, npy_intp n, Part *a) { column_product(x, n, a); }
    static void combine(Acc &a, Acc b) { a *= b; }
};

// The larger (or the smaller) of two; a NaN stays.
template <bool MAX, class C>
INLINE C extreme(C a, C x) {
    bool better = MAX ? x > a : x < a;
    if constexpr (std::is_floating_point_v<C>) better |= x != x;
    return better ? x : a;
}
template <bool MAX, class T>
CLONES void row_extreme(const T *x, npy_intp n, Compute<T> &best) {
    using C = Compute<T>;
    C m = best;
    if constexpr (std::is_floating_point_v<C>) {
        std::conditional_t<sizeof(C) == 8, int64_t, int32_t> nan = m != m;
        if constexpr (MAX) {
            REDUCE2(max : m, | : nan)
            for (npy_intp i = 0; i < n; i++) m = widen(x[i]) > m ? widen(x[i]) : m, nan |= widen(x[i]) != widen(x[i]);
        } else {
            REDUCE2(min : m, | : nan)
            for (npy_intp i = 0; i < n; i++) m = widen(x[i]) < m ? widen(x[i]) : m, nan |= widen(x[i]) != widen(x[i]);
        }
        if (nan) m = std::numeric_limits<C>::quiet_NaN();
    } else if constexpr (std::is_same_v<T, bool>) {
        for (npy_intp i = 0; i < n; i++) m = MAX ? m | x[i] : m & x[i];
    } else {
        for (npy_intp i = 0; i < n; i++) m = extreme<MAX>(m, x[i]);
    }
    best = m;
}
template <bool MAX, class T>
CLONES void column_extreme(const T *x, npy_intp n, Compute<T> *best) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) best[i] = extreme<MAX>(best[i], widen(x[i]));
}
// Of short rows, `step` bytes apart, several at once; those with a NaN again, one by one.
template <bool MAX, class T>
CLONES void row_extremes(const T *x, npy_intp step, npy_intp rows, npy_intp n, Compute<T> *found) {
    using C = Compute<T>;
    using Flag = std::conditional_t<sizeof(C) == 8, int64_t, int32_t>;
    auto at = [=](npy_intp row) { return (const T *)((const char *)x + row * step); };
    auto is_nan = [](C v) INLINE_LAMBDA { return Flag(v != v); };
    for (npy_intp row = 0; row < rows; row += 4) {  // of the last ones, some several times
        const T *a = at(row), *b = at(std::min(row + 1, rows - 1)), *c = at(std::min(row + 2, rows - 1)),
                *d = at(std::min(row + 3, rows - 1));
        C p = widen(a[0]), q = widen(b[0]), r = widen(c[0]), s = widen(d[0]);
        Flag nan = 0;
        if constexpr (MAX) {
            REDUCE_FOUR(max : p, q, r, s, nan)
            for (npy_intp i = 0; i < n; i++) {
                C e = widen(a[i]), f = widen(b[i]), g = widen(c[i]), h = widen(d[i]);
                p = e > p ? e : p, q = f > q ? f : q, r = g > r ? g : r, s = h > s ? h : s;
                nan |= is_nan(e) | is_nan(f) | is_nan(g) | is_nan(h);
            }
        } else {
            REDUCE_FOUR(min : p, q, r, s, nan)
            for (npy_intp i = 0; i < n; i++) {
                C e = widen(a[i]), f = widen(b[i]), g = widen(c[i]), h = widen(d[i]);
                p = e < p ? e : p, q = f < q ? f : q, r = g < r ? g : r, s = h < s ? h : s;
                nan |= is_nan(e) | is_nan(f) | is_nan(g) | is_nan(h);
            }
        }
        C four[] = {p, q, r, s};
        for (npy_intp k = 0; k < 4 && row + k < rows; k++) {
            found[row + k] = four[k];
            for (npy_intp i = 0; nan && i < n; i++)
                if (C v = widen(at(row + k)[i]); v != v) found[row + k] = v;
        }
    }
}

template <bool MAX, class T>
struct Extreme {
    using Element = T;
    using Acc = Compute<T>;
    using Part = Acc;
    using Result = T;
    using Short = T;
    static INLINE Acc fold(Acc a, Acc b) { return extreme<MAX>(a, b); }
    static void rows(const T *x, npy_intp step, npy_intp count, npy_intp n, Part *found) {
        if (!fold_shortest<Extreme<MAX, T>>(x, step, count, n, found)) row_extremes<MAX>(x, step, count, n, found);
    }
    static Acc identity() {
        using L = std::numeric_limits<Acc>;
        if constexpr (std::is_floating_point_v<Acc>)
            return MAX ? -L::infinity() : L::infinity();
        else
            return MAX ? L::lowest() : L::max();
    }
    static void row(const T *x, npy_intp n, Acc &a) {
        for (npy_intp i = 0; i < n; i += 4096) row_extreme<MAX>(x + i, std::min<npy_intp>(4096, n - i), a);
    }
    static void column(const T *x, npy_intp n, Acc *a) { column_extreme<MAX>(x, n, a); }
    static void combine(Acc &a, Acc b) { a = extreme<MAX>(a, b); }
    static Acc finish(Acc a, npy_intp) { return a; }
};
template <class T>
using Max = Extreme<true, T>;
template <class T>
using Min = Extreme<false, T>;

// Of few long rows each is cut into pieces, which threads share. A piece's result is kept at its place
// and joined in order, so that the threads make no difference.
struct LongRows {
    npy_intp length = 0, count = 0, each = 0, pieces = 0;

    npy_intp first(npy_intp piece) const { return piece % pieces * each; }
    npy_intp size(npy_intp piece) const { return std::min(each, length - first(piece)); }
    npy_intp row(npy_intp piece) const { return piece / pieces; }
    npy_intp all() const { return count * pieces; }
    double sum(const std::vector<double> &parts, npy_intp k) const {
        double total = 0;
        for (npy_intp piece = k * pieces; piece < (k + 1) * pieces; piece++) total += parts[piece];
        return total;
    }
};

// ---- the array as kept and reduced dimensions ---------------------------------------------------

struct Dims {
    int n = 0;
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS], size = 1;

    void add(npy_intp length, npy_intp stride) {
        size *= length;
        if (length == 1) return;
        if (n && strides[n - 1] == stride * length) {
            shape[n - 1] *= length, strides[n - 1] = stride;
        } else {
            shape[n] = length, strides[n++] = stride;
        }
    }
    npy_intp offset(npy_intp index, int dims) const {
        npy_intp sum = 0;
        if (dims == 1) return index * strides[0];
        for (int d = dims - 1; d >= 0; d--) {
            sum += index % shape[d] * strides[d];
            index /= shape[d];
        }
        return sum;
    }
};

struct Request {
    PyArrayObject *x = nullptr;
    bool reduced[NPY_MAXDIMS];
    bool keepdims = false;
    PyObject *dtype = nullptr;
    Dims kept, gone;
    DType type = NONE;

    void split() {
        kept = gone = Dims();
        for (int d = 0; d < PyArray_NDIM(x); d++)
            (reduced[d] ? gone : kept).add(PyArray_DIM(x, d), PyArray_STRIDE(x, d));
        type = dtype_of(PyArray_TYPE(x));
    }
    // For reductions that may take elements in any order: as they lie in memory.
    void take_in_memory_order() {
        int order[NPY_MAXDIMS], n = 0;
        for (int d = 0; d < PyArray_NDIM(x); d++) {
            if (!reduced[d]) continue;
            int at = n++;
            for (; at > 0 && PyArray_STRIDE(x, order[at - 1]) < PyArray_STRIDE(x, d); at--)
                order[at] = order[at - 1];
            order[at] = d;
        }
        gone = Dims();
        for (int i = 0; i < n; i++) gone.add(PyArray_DIM(x, order[i]), PyArray_STRIDE(x, order[i]));
    }
    PyArrayObject *result(DType dtype) const {
        npy_intp shape[NPY_MAXDIMS];
        int n = 0;
        for (int d = 0; d < PyArray_NDIM(x); d++)
            if (!reduced[d] || keepdims) shape[n++] = reduced[d] ? 1 : PyArray_DIM(x, d);
        PyArray_Descr *descr = descr_of(dtype);
        return descr ? (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, descr, n, shape, nullptr,
                                                             nullptr, 0, nullptr)
                     : nullptr;
    }
    bool rows_contiguous() const {
        return gone.n == 0 || gone.strides[gone.n - 1] == PyArray_ITEMSIZE(x);
    }
};

inline PyObject *not_here() {
    Py_INCREF(Py_NotImplemented);
    return Py_NotImplemented;
}

// Reads (x, axis=None, keepdims=False, dtype=None). False: let the twin answer, or complain.
inline bool read(Request &r, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *values[4] = {nullptr, Py_None, Py_False, Py_None};
    static const char *const keys[4] = {"x", "axis", "keepdims", "dtype"};
    if (n < 1 || n > 4) return false;
    for (Py_ssize_t i = 0; i < n; i++) values[i] = args[i];
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++) {
        int k = 1;
        while (k < 4 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), keys[k])) k++;
        if (k == 4) return false;
        values[k] = args[n + i];
    }
    if (!is_plain(values[0])) return false;
    r.x = (PyArrayObject *)values[0];
    int ndim = PyArray_NDIM(r.x);
    std::fill(r.reduced, r.reduced + ndim, values[1] == Py_None);
    if (values[1] != Py_None) {
        bool many = PyTuple_Check(values[1]);
        Py_ssize_t count = many ? PyTuple_GET_SIZE(values[1]) : 1;
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject *axis = many ? PyTuple_GET_ITEM(values[1], i) : values[1];
            if (!PyLong_Check(axis)) return false;
            long a = PyLong_AsLong(axis);
            if (PyErr_Occurred()) PyErr_Clear();
            if (!ndim && (a == 0 || a == -1)) continue;  // a number is one element in a row
            if (a < 0) a += ndim;
            if (a < 0 || a >= ndim || r.reduced[a]) return false;
            r.reduced[a] = true;
        }
    }
    if (!PyBool_Check(values[2])) return false;
    r.keepdims = values[2] == Py_True;
    r.dtype = values[3] == Py_None ? nullptr : values[3];
    r.split();
    return r.type != NONE;
}

// The array with the reduced dimensions last, and each row contiguous: copied if it has to be.
inline PyArrayObject *rows_of(const Request &r) {
    int ndim = PyArray_NDIM(r.x), n = 0;
    npy_intp order[NPY_MAXDIMS];
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < ndim; d++)
            if (r.reduced[d] == bool(pass)) order[n++] = d;
    PyArray_Dims permutation = {order, ndim};
    PyObject *moved = PyArray_Transpose(r.x, &permutation);
    if (!moved) return nullptr;
    PyArrayObject *copy = row_major((PyArrayObject *)moved);
    Py_DECREF(moved);
    return copy;
}

constexpr npy_intp PIECE = 1 << 15;

// Has the op a loop over four rows at once?
template <class Op, class = void>
struct takes_four : std::false_type {};
template <class Op>
struct takes_four<Op, std::enable_if_t<std::is_same_v<typename Op::Four, typename Op::Element>>> : std::true_type {};

// Has it a loop over short rows, many at once?
template <class Op, class = void>
struct takes_short : std::false_type {};
template <class Op>
struct takes_short<Op, std::enable_if_t<std::is_same_v<typename Op::Short, typename Op::Element>>> : std::true_type {};

// Are parts results as they are?
template <class Op, class = void>
struct is_plain_op : std::false_type {};
template <class Op>
struct is_plain_op<Op, std::enable_if_t<Op::plain>> : std::true_type {};

template <class Op>
typename Op::Result finished(typename Op::Acc acc, npy_intp size) {
    auto result = Op::finish(acc, size);
    return Narrow<typename Op::Result, decltype(result)>::from(result);
}

constexpr npy_intp AT_ONCE = 64;  // short rows

template <class Op>
void reduce_short_rows(const Request &r, typename Op::Result *out) {
    using T = typename Op::Element;
    const Dims &kept = r.kept, &gone = r.gone;
    npy_intp inner = kept.n ? kept.shape[kept.n - 1] : 1, step = kept.n ? kept.strides[kept.n - 1] : 0;
    parallel_for(kept.size, PIECE / 2 / gone.size + 1, [&](int64_t begin, int64_t end) {
        typename Op::Part sums[AT_ONCE];
        for (int64_t k = begin; k < end;) {
            npy_intp count = std::min<npy_intp>({AT_ONCE, inner - k % inner, npy_intp(end - k)});
            const char *base = PyArray_BYTES(r.x) + kept.offset(k, kept.n);
            Op::rows((const T *)base, step, count, gone.size, sums);
            for (npy_intp i = 0; i < count; i++) out[k + i] = finished<Op>(typename Op::Acc(sums[i]), gone.size);
            k += count;
        }
    }, 1);
}

// Element after element of `count` rows of n, `step` bytes apart: to[j * width + i] is the j-th of row i.
template <class T>
INLINE void turn_rows(const T *x, npy_intp step, npy_intp count, npy_intp n, npy_intp width, T *to) {
    for (npy_intp j = 0; j < n; j++)
        for (npy_intp i = 0; i < count; i++) to[j * width + i] = ((const T *)((const char *)x + i * step))[j];
}

// Rows of few elements: many of them turned, so that results lie side by side.
template <class Op>
void reduce_narrow_rows(const Request &r, typename Op::Result *out) {
    using T = typename Op::Element;
    const Dims &kept = r.kept, &gone = r.gone;
    npy_intp inner = kept.n ? kept.shape[kept.n - 1] : 1, step = kept.n ? kept.strides[kept.n - 1] : 0;
    parallel_for(kept.size, PIECE / gone.size, [&](int64_t begin, int64_t end) {
        T turned[NARROW * 64];
        typename Op::Part parts[192];
        npy_intp width = turned_at_once(gone.size);
        for (int64_t k = begin; k < end;) {
            npy_intp count = std::min<npy_intp>({width, inner - k % inner, npy_intp(end - k)});
            const char *base = PyArray_BYTES(r.x) + kept.offset(k, kept.n);
            turn_rows((const T *)base, step, count, gone.size, width, turned);
            std::fill(parts, parts + width, typename Op::Part(Op::identity()));
            for (npy_intp j = 0; j < gone.size; j++) Op::column(turned + j * width, count, parts);
            for (npy_intp i = 0; i < count; i++) out[k + i] = finished<Op>(typename Op::Acc(parts[i]), gone.size);
            k += count;
        }
    }, 1);
}

// Takes rows of one result into its accumulator.
template <class Op>
void take_rows(const Dims &gone, const char *base, npy_intp from, npy_intp to, npy_intp length,
               typename Op::Acc &acc) {
    using T = typename Op::Element;
    if constexpr (takes_short<Op>::value)
        if (gone.n == 2 && length <= SHORT_ROW) {
            typename Op::Part sums[AT_ONCE];
            for (npy_intp row = from; row < to; row += AT_ONCE) {
                npy_intp count = std::min(AT_ONCE, to - row);
                Op::rows((const T *)(base + row * gone.strides[0]), gone.strides[0], count, length, sums);
                for (npy_intp i = 0; i < count; i++) Op::combine(acc, typename Op::Acc(sums[i]));
            }
            return;
        }
    for (npy_intp row = from; row < to; row++)
        Op::row((const T *)(base + gone.offset(row, gone.n - 1)), length, acc);
}

template <class Op>
void reduce_rows(const Request &r, typename Op::Result *out) {
    using T = typename Op::Element;
    using Acc = typename Op::Acc;
    const Dims &kept = r.kept, &gone = r.gone;
    if constexpr (takes_short<Op>::value)
        if (gone.n <= 1 && gone.size <= SHORT_ROW) return reduce_short_rows<Op>(r, out);
    if constexpr (turns_rows<T>)
        if (gone.n <= 1 && gone.size <= NARROW && kept.size >= 64) return reduce_narrow_rows<Op>(r, out);
    npy_intp length = gone.n ? gone.shape[gone.n - 1] : 1, rows = gone.size / length;
    // few results of many elements: cut each into pieces, of rows or within one row
    npy_intp pieces = 1, rows_each = rows, length_each = length;
    if (kept.size < 64 && gone.size > 2 * PIECE) {
        if (rows > 1) {
            rows_each = std::max<npy_intp>(1, PIECE / length);
            pieces = (rows + rows_each - 1) / rows_each;
        } else {
            length_each = PIECE;
            pieces = (length + PIECE - 1) / PIECE;
        }
    }
    std::vector<Acc> parts(pieces > 1 ? kept.size * pieces : 0);
    npy_intp items = kept.size * pieces;
    npy_intp grain = std::max<npy_intp>(1, PIECE / 2 / std::max<npy_intp>(1, gone.size / pieces));
    parallel_for(items, grain, [&](int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; item++) {
            npy_intp k = item / pieces, piece = item % pieces;
            const char *base = PyArray_BYTES(r.x) + kept.offset(k, kept.n);
            Acc acc = Op::identity();
            npy_intp from = rows > 1 ? piece * rows_each : 0, to = rows > 1 ? std::min(rows, from + rows_each) : 1;
            npy_intp start = rows > 1 ? 0 : piece * length_each;
            npy_intp count = rows > 1 ? length : std::min(length_each, length - start);
            take_rows<Op>(gone, base + start * npy_intp(sizeof(T)), from, to, count, acc);
            if (pieces > 1)
                parts[item] = acc;
            else
                out[k] = finished<Op>(acc, gone.size);
        }
    }, 1);
    for (npy_intp k = 0; pieces > 1 && k < kept.size; k++) {
        Acc acc = parts[k * pieces];
        for (npy_intp p = 1; p < pieces; p++) Op::combine(acc, parts[k * pieces + p]);
        out[k] = finished<Op>(acc, gone.size);
    }
}

// The kept dimension lies innermost: rows are added to a block of accumulators.
template <class Op>
void reduce_columns(const Request &r, typename Op::Result *out) {
    using T = typename Op::Element;
    using Acc = typename Op::Acc;
    constexpr npy_intp WIDTH = 1024;
    const Dims &kept = r.kept, &gone = r.gone;
    npy_intp columns = kept.shape[kept.n - 1], outer = kept.size / columns, rows = gone.size;
    npy_intp blocks = (columns + WIDTH - 1) / WIDTH;
    // narrow rows that follow each other are taken several at a time
    npy_intp joined = 1;
    if (gone.n == 1 && gone.strides[0] == columns * npy_intp(sizeof(T)) && (columns < 64 || !takes_four<Op>::value))
        joined = std::max<npy_intp>(1, std::min(64 / columns, rows));
    // few rows are added up where their sums shall stand; others in parts that are joined in `Acc`
    constexpr npy_intp FEW = std::is_same_v<typename Op::Part, Acc> ? npy_intp(1) << 40 : 16;
    npy_intp pieces = 1, rows_each = rows;
    if (outer * blocks < 64 && rows * std::min(columns, WIDTH) > 2 * PIECE) {
        rows_each = std::max<npy_intp>({1, PIECE / std::min(columns, WIDTH), rows / 16});
        rows_each = (rows_each + joined - 1) / joined * joined;
        pieces = (rows + rows_each - 1) / rows_each;
    }
    std::vector<Acc> parts(pieces > 1 ? outer * columns * pieces : 0);
    npy_intp items = outer * blocks * pieces, work = std::min(columns, WIDTH) * rows_each;
    npy_intp grain = std::max<npy_intp>(1, PIECE / 2 / std::max<npy_intp>(1, work));
    parallel_for(items, grain, [&](int64_t begin, int64_t end) {
        Acc acc[WIDTH];
        typename Op::Part part[WIDTH];
        for (int64_t item = begin; item < end; item++) {
            npy_intp piece = item % pieces, block = item / pieces % blocks, o = item / pieces / blocks;
            npy_intp first = block * WIDTH, width = std::min(WIDTH, columns - first);
            const char *base = PyArray_BYTES(r.x) + kept.offset(o, kept.n - 1) + first * npy_intp(sizeof(T));
            npy_intp row = piece * rows_each, to = std::min(rows, row + rows_each);
            npy_intp used = joined > 1 ? joined * columns : width, at = o * columns + first;
            if constexpr (is_plain_op<Op>::value && takes_four<Op>::value)
                if (rows <= FEW && joined == 1 && gone.n == 1 && pieces == 1) {
                    std::fill(out + at, out + at + width, typename Op::Part(Op::identity()));
                    for (; row + 4 <= to; row += 4)
                        Op::four((const T *)(base + row * gone.strides[0]), gone.strides[0], width, out + at);
                    for (; row < to; row++)
                        Op::column((const T *)(base + row * gone.strides[0]), width, out + at);
                    continue;
                }
            std::fill(acc, acc + used, Op::identity());
            while (row < to) {
                std::fill(part, part + used, typename Op::Part(Op::identity()));
                for (npy_intp few = 0; few < FEW && row < to; few++) {
                    if constexpr (takes_four<Op>::value)
                        if (joined == 1 && gone.n == 1 && row + 4 <= to) {
                            Op::four((const T *)(base + row * gone.strides[0]), gone.strides[0], width, part);
                            row += 4, few += 3;
                            continue;
                        }
                    bool several = joined > 1 && row + joined <= to;
                    Op::column((const T *)(base + gone.offset(row, gone.n)), several ? used : width, part);
                    row += several ? joined : 1;
                }
                for (npy_intp c = 0; c < used; c++) Op::combine(acc[c], Acc(part[c]));
            }
            for (npy_intp j = 1; j < joined; j++)
                for (npy_intp c = 0; c < columns; c++) Op::combine(acc[c], acc[j * columns + c]);
            if (pieces > 1) {
                std::copy(acc, acc + width, parts.begin() + piece * outer * columns + at);
                continue;
            }
            INDEPENDENT
            for (npy_intp c = 0; c < width; c++) out[at + c] = finished<Op>(acc[c], gone.size);
        }
    }, 1);
    for (npy_intp i = 0; pieces > 1 && i < outer * columns; i++) {
        Acc a = parts[i];
        for (npy_intp p = 1; p < pieces; p++) Op::combine(a, parts[p * outer * columns + i]);
        out[i] = finished<Op>(a, gone.size);
    }
}

template <class Op>
PyObject *reduce(Request &r) {
    PyArrayObject *out = r.result(DTypeOf<typename Op::Result>::value);
    if (!out) return nullptr;
    if (PyArray_SIZE(out) == 0) return (PyObject *)out;
    auto *data = (typename Op::Result *)PyArray_DATA(out);
    r.take_in_memory_order();
    if (r.gone.size == 0) {
        auto none = Op::finish(Op::identity(), 0);
        std::fill(data, data + PyArray_SIZE(out), Narrow<typename Op::Result, decltype(none)>::from(none));
        return (PyObject *)out;
    }
    PyArrayObject *copy = nullptr, *original = r.x;
    npy_intp item = PyArray_ITEMSIZE(r.x);
    bool rows = r.rows_contiguous();
    bool columns = !rows && r.kept.n && r.kept.strides[r.kept.n - 1] == item;
    if (!rows && !columns) {
        copy = row_major(r.x);
        if (!copy) {
            Py_DECREF(out);
            return nullptr;
        }
        r.x = copy;
        r.split();
        rows = r.rows_contiguous();
    }
    PyThreadState *state = PyArray_SIZE(r.x) >= PIECE ? PyEval_SaveThread() : nullptr;
    if (rows)
        reduce_rows<Op>(r, data);
    else
        reduce_columns<Op>(r, data);
    if (state) PyEval_RestoreThread(state);
    Py_XDECREF((PyObject *)copy);
    r.x = original;
    return (PyObject *)out;
}

constexpr npy_intp MOST_PIECES = 32;

inline bool has_long_rows(const Request &r, LongRows &rows) {
    if (!r.rows_contiguous() || r.gone.n != 1 || r.kept.size > 4 || r.gone.size <= 2 * PIECE) return false;
    rows.length = r.gone.size, rows.count = r.kept.size;
    rows.each = std::max(PIECE, (rows.length + MOST_PIECES - 1) / MOST_PIECES);
    rows.pieces = (rows.length + rows.each - 1) / rows.each;
    return true;
}
// body(piece, its elements, how many there are)
template <class T, class Body>
void for_pieces(const Request &r, const LongRows &rows, Body body) {
    PyThreadState *state = PyEval_SaveThread();
    parallel_for(rows.all(), 1, [&](int64_t begin, int64_t end) {
        for (int64_t piece = begin; piece < end; piece++) {
            const char *row = PyArray_BYTES(r.x) + r.kept.offset(rows.row(piece), r.kept.n);
            body(piece, (const T *)row + rows.first(piece), rows.size(piece));
        }
    }, 1);
    PyEval_RestoreThread(state);
}

// ---- choice by dtype ----------------------------------------------------------------------------

using Reducer = PyObject *(*)(Request &);

template <template <class> class Op, class... T>
void enter(Reducer *table, Types<T...>) {
    ((table[DTypeOf<T>::value] = reduce<Op<T>>), ...);
}

// Floats whose reductions have loops; those of float16 are the ones of float32.
using ReducedFloats = Types<BFloat, float, double>;

inline DType reduced_type(const Request &r) { return r.type == F2 ? F4 : r.type; }

// A result of float32 as float16; a pair's too.
inline PyObject *as_halves(PyObject *result) {
    if (!result) return nullptr;
    PyObject *found = nullptr;
    if (PyTuple_Check(result)) {
        PyObject *items[2];
        for (int i = 0; i < 2; i++) Py_INCREF(PyTuple_GET_ITEM(result, i)), items[i] = as_halves(PyTuple_GET_ITEM(result, i));
        if (items[0] && items[1]) found = Py_BuildValue("(OO)", items[0], items[1]);
        Py_XDECREF(items[0]), Py_XDECREF(items[1]);
    } else if (PyArray_Check(result) && PyArray_TYPE((PyArrayObject *)result) == NPY_FLOAT) {
        found = (PyObject *)cast_array((PyArrayObject *)result, F2);
    } else {
        return result;
    }
    Py_DECREF(result);
    return found;
}

inline PyObject *run(Reducer *table, Request &r) {
    Reducer reducer = table[reduced_type(r)];
    if (!reducer) return not_here();
    if (r.type != F2) return reducer(r);
    PyArrayObject *halves = r.x, *wide = cast_array(halves, F4);
    if (!wide) return nullptr;
    r.x = wide;
    r.split();
    PyObject *result = as_halves(reducer(r));
    Py_DECREF(wide);
    r.x = halves;
    r.split();
    return result;
}

// Sums and products: `dtype` says what to convert to first.
inline PyObject *accumulate(Reducer *table, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Request r;
    if (!read(r, args, n, names)) return not_here();
    PyArrayObject *converted = nullptr;
    if (r.dtype) {
        PyArray_Descr *descr;
        if (!PyArray_DescrConverter(r.dtype, &descr)) return nullptr;
        DType to = dtype_of(descr->type_num);
        Py_DECREF(descr);
        if (to == NONE || (to < I8 && to != r.type) || (to <= I4 && to == r.type) || to == U8)
            return not_here();
        bool natural = to == r.type || (to == I8 && r.type <= I8);
        if (!natural) {
            converted = cast_array(r.x, to);
            if (!converted) return nullptr;
            r.x = converted;
            r.split();
        }
    }
    PyObject *result = run(table, r);
    Py_XDECREF((PyObject *)converted);
    return result;
}

template <Reducer *table, bool NONEMPTY>
PyObject *plain(PyObject *const *a, Py_ssize_t n, PyObject *names) {
    Request r;
    if (!read(r, a, n, names) || r.dtype || (NONEMPTY && r.gone.size == 0)) return not_here();
    return run(table, r);
}
// ---- reductions that need more than one pass, or a place ----------------------------------------

// Hands `body` the contiguous rows of each result: body(k, rows), rows(f) calls f(row, length, index
// of the row's first element) in order. The array is copied where it has no contiguous rows.
template <class T, class Body>
bool for_rows(Request &r, Body body) {
    PyArrayObject *copy = nullptr;
    if (!r.rows_contiguous()) {
        copy = rows_of(r);
        if (!copy) return false;
    }
    const char *data = PyArray_BYTES(copy ? copy : r.x);
    npy_intp size = r.gone.size, length = copy || !r.gone.n ? size : r.gone.shape[r.gone.n - 1];
    npy_intp grain = std::max<npy_intp>(1, PIECE / 2 / std::max<npy_intp>(1, size));
    PyThreadState *state = PyArray_SIZE(r.x) >= PIECE ? PyEval_SaveThread() : nullptr;
    parallel_for(r.kept.size, grain, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; k++) {
            const char *base = data + (copy ? k * size * npy_intp(sizeof(T)) : r.kept.offset(k, r.kept.n));
            body(k, [&](auto f) {
                for (npy_intp i = 0; i < size; i += length)
                    f((const T *)(base + (copy ? 0 : r.gone.offset(i / length, r.gone.n - 1))), length, i);
            });
        }
    }, 1);
    if (state) PyEval_RestoreThread(state);
    Py_XDECREF((PyObject *)copy);
    return true;
}

constexpr npy_intp BAND = 256;

inline bool by_columns(const Request &r) {
    return !r.rows_contiguous() && r.kept.n && r.gone.size &&
           r.kept.strides[r.kept.n - 1] == PyArray_ITEMSIZE(r.x) && r.kept.shape[r.kept.n - 1] >= 16;
}

// The same where results lie side by side: body(first result, how many, rows), rows(f) calls
// f(elements, index of the row).
template <class T, class Body>
void for_columns(const Request &r, Body body) {
    npy_intp columns = r.kept.shape[r.kept.n - 1], bands = (columns + BAND - 1) / BAND;
    npy_intp items = r.kept.size / columns * bands;
    npy_intp grain = std::max<npy_intp>(1, PIECE / 2 / (r.gone.size * std::min(columns, BAND)));
    PyThreadState *state = PyArray_SIZE(r.x) >= PIECE ? PyEval_SaveThread() : nullptr;
    parallel_for(items, grain, [&](int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; item++) {
            npy_intp o = item / bands, first = item % bands * BAND, width = std::min(BAND, columns - first);
            const char *base = PyArray_BYTES(r.x) + r.kept.offset(o, r.kept.n - 1) + first * npy_intp(sizeof(T));
            body(o * columns + first, width, [&](auto f) {
                for (npy_intp row = 0; row < r.gone.size; row++)
                    f((const T *)(base + r.gone.offset(row, r.gone.n)), row);
            });
        }
    }, 1);
    if (state) PyEval_RestoreThread(state);
}

}  // namespace
