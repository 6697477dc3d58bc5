// Reductions and scans. Work is cut into pieces by the shape alone, never by the number of threads,
// so that a sum has the same bits on every machine of one kind.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "complex.h"
#include "copying.h"
#include "kernel.h"
#include "parallel.h"
#include "vecmath.h"

PyArrayObject *cast_array(PyArrayObject *x, DType to);

#if defined(_OPENMP)
#define PRAGMA(...) _Pragma(#__VA_ARGS__)
#define REDUCE(...) PRAGMA(omp simd reduction(__VA_ARGS__))
#else
#define REDUCE(...)
#endif

namespace {

// ---- what is reduced ----------------------------------------------------------------------------
// Op<T>: `Acc` the accumulator's type; `row` takes contiguous elements into one accumulator, `column`
// one element into each of several, of type `Part` (which may be narrower, for a few rows); `combine`
// joins two accumulators; `finish` gives the result.

template <class T>
using SumType = std::conditional_t<std::is_floating_point_v<Compute<T>>, double, uint64_t>;

// Long rows: many partial sums side by side, widened after every chunk.
template <class T>
CLONES void long_row_sum(const T *x, npy_intp n, double &total) {
    constexpr npy_intp wide = 64, chunk = 1024;
    double sums[wide] = {};
    for (; n >= wide; ) {
        npy_intp m = (n < chunk ? n : chunk) / wide * wide;
        Compute<T> part[wide] = {};
        for (npy_intp i = 0; i < m; i += wide)
            for (npy_intp k = 0; k < wide; k++) part[k] += widen(x[i + k]);
        for (npy_intp k = 0; k < wide; k++) sums[k] += double(part[k]);
        x += m, n -= m;
    }
    for (npy_intp i = 0; i < n; i++) sums[i] += double(widen(x[i]));
    for (npy_intp half = wide / 2; half; half /= 2)
        for (npy_intp k = 0; k < half; k++) sums[k] += sums[k + half];
    total += sums[0];
}

template <class T>
CLONES void row_sum(const T *x, npy_intp n, SumType<T> &total) {
    // four partial sums of a chunk in the elements' precision, chunks joined in double
    using P = std::conditional_t<std::is_floating_point_v<Compute<T>>, Compute<T>, uint64_t>;
    constexpr npy_intp chunk = 2048;
    if constexpr (std::is_same_v<T, float>)
        if (n >= chunk) return long_row_sum(x, n, total);
    for (npy_intp begin = 0; begin < n; begin += chunk) {
        npy_intp quarter = std::min(chunk, n - begin) / 4;
        const T *a = x + begin, *b = a + quarter, *c = b + quarter, *d = c + quarter;
        P s = 0, t = 0, u = 0, v = 0;
        REDUCE(+ : s, t, u, v)
        for (npy_intp i = 0; i < quarter; i++) {
            s += P(widen(a[i])), t += P(widen(b[i]));
            u += P(widen(c[i])), v += P(widen(d[i]));
        }
        SumType<T> part = (SumType<T>(s) + SumType<T>(t)) + (SumType<T>(u) + SumType<T>(v));
        for (npy_intp i = begin + 4 * quarter; i < std::min(n, begin + chunk); i++)
            part += SumType<T>(widen(x[i]));
        total += part;
    }
}
template <class T>
using PartType = std::conditional_t<std::is_floating_point_v<Compute<T>>, Compute<T>, uint64_t>;
template <class T>
CLONES void column_sum(const T *x, npy_intp n, PartType<T> *total) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) total[i] += PartType<T>(widen(x[i]));
}

template <class T>
struct Sum {
    using Element = T;
    using Acc = SumType<T>;
    using Part = PartType<T>;
    static Acc identity() { return 0; }
    static void row(const T *x, npy_intp n, Acc &a) { row_sum(x, n, a); }
    static void column(const T *x, npy_intp n, Part *a) { column_sum(x, n, a); }
    static void combine(Acc &a, Acc b) { a += b; }
    using Result = std::conditional_t<std::is_floating_point_v<Compute<T>>, T, int64_t>;
    static auto finish(Acc a, npy_intp) {
        return std::conditional_t<std::is_same_v<Result, int64_t>, int64_t, Compute<Result>>(a);
    }
};
template <class T>
struct Mean : Sum<T> {
    static auto finish(double a, npy_intp n) { return Compute<T>(a / double(n)); }
};

template <class T>
CLONES void row_product(const T *x, npy_intp n, SumType<T> &total) {
    SumType<T> p = total;
    REDUCE(* : p)
    for (npy_intp i = 0; i < n; i++) p *= SumType<T>(widen(x[i]));
    total = p;
}
template <class T>
CLONES void column_product(const T *x, npy_intp n, SumType<T> *total) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) total[i] *= SumType<T>(widen(x[i]));
}
template <class T>
struct Product : Sum<T> {
    using Acc = SumType<T>;
    using Part = Acc;
    static Acc identity() { return 1; }
    static void row(const T *x, npy_intp n, Acc &a) { row_product(x, n, a); }
    static void column(const T *x, npy_intp n, Acc *a) { column_product(x, n, a); }
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
        int nan = m != m;
        if constexpr (MAX) {
            REDUCE(max : m) for (npy_intp i = 0; i < n; i++) m = widen(x[i]) > m ? widen(x[i]) : m;
        } else {
            REDUCE(min : m) for (npy_intp i = 0; i < n; i++) m = widen(x[i]) < m ? widen(x[i]) : m;
        }
        for (npy_intp i = 0; i < n; i++) nan |= widen(x[i]) != widen(x[i]);
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
template <bool MAX, class T>
struct Extreme {
    using Element = T;
    using Acc = Compute<T>;
    using Part = Acc;
    using Result = T;
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
    using Result = bool;
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
    static bool finish(Acc a, npy_intp) { return a; }
};
template <class T>
using Any = Quantifier<true, T>;
template <class T>
using All = Quantifier<false, T>;

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

PyObject *not_here() {
    Py_INCREF(Py_NotImplemented);
    return Py_NotImplemented;
}

// Reads (x, axis=None, keepdims=False, dtype=None). False: let the twin answer, or complain.
bool read(Request &r, PyObject *const *args, Py_ssize_t n, PyObject *names) {
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
            if (a < 0) a += ndim;
            if (PyErr_Occurred()) PyErr_Clear();
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
PyArrayObject *rows_of(const Request &r) {
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

template <class Op>
void reduce_rows(const Request &r, typename Op::Result *out) {
    using T = typename Op::Element;
    using Acc = typename Op::Acc;
    const Dims &kept = r.kept, &gone = r.gone;
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
            for (npy_intp row = from; row < to; row++) {
                const char *p = base + gone.offset(row, gone.n - 1) + start * npy_intp(sizeof(T));
                Op::row((const T *)p, count, acc);
            }
            if (pieces > 1)
                parts[item] = acc;
            else
                out[k] = Narrow<typename Op::Result, decltype(Op::finish(acc, 1))>::from(
                    Op::finish(acc, gone.size));
        }
    }, 1);
    for (npy_intp k = 0; pieces > 1 && k < kept.size; k++) {
        Acc acc = parts[k * pieces];
        for (npy_intp p = 1; p < pieces; p++) Op::combine(acc, parts[k * pieces + p]);
        out[k] = Narrow<typename Op::Result, decltype(Op::finish(acc, 1))>::from(Op::finish(acc, gone.size));
    }
}

// The kept dimension lies innermost: rows are added to a block of accumulators.
template <class Op>
void reduce_columns(const Request &r, typename Op::Result *out) {
    using T = typename Op::Element;
    using Acc = typename Op::Acc;
    constexpr npy_intp WIDTH = 512;
    const Dims &kept = r.kept, &gone = r.gone;
    npy_intp columns = kept.shape[kept.n - 1], outer = kept.size / columns, rows = gone.size;
    npy_intp blocks = (columns + WIDTH - 1) / WIDTH;
    // narrow rows that follow each other are taken several at a time
    npy_intp joined = 1;
    if (gone.n == 1 && gone.strides[0] == columns * npy_intp(sizeof(T)))
        joined = std::max<npy_intp>(1, std::min(WIDTH / columns, rows));
    npy_intp pieces = 1, rows_each = rows;
    if (outer * blocks < 64 && rows * std::min(columns, WIDTH) > 2 * PIECE) {
        rows_each = std::max<npy_intp>(1, PIECE / std::min(columns, WIDTH));
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
            npy_intp used = joined > 1 ? joined * columns : width;
            std::fill(acc, acc + used, Op::identity());
            while (row < to) {
                std::fill(part, part + used, typename Op::Part(Op::identity()));
                for (int few = 0; few < 16 && row < to; few++) {
                    bool several = joined > 1 && row + joined <= to;
                    Op::column((const T *)(base + gone.offset(row, gone.n)), several ? used : width, part);
                    row += several ? joined : 1;
                }
                for (npy_intp c = 0; c < used; c++) Op::combine(acc[c], Acc(part[c]));
            }
            for (npy_intp j = 1; j < joined; j++)
                for (npy_intp c = 0; c < columns; c++) Op::combine(acc[c], acc[j * columns + c]);
            npy_intp at = o * columns + first;
            for (npy_intp c = 0; c < width; c++) {
                if (pieces > 1)
                    parts[piece * outer * columns + at + c] = acc[c];
                else
                    out[at + c] = Narrow<typename Op::Result, decltype(Op::finish(acc[c], 1))>::from(
                        Op::finish(acc[c], gone.size));
            }
        }
    }, 1);
    for (npy_intp i = 0; pieces > 1 && i < outer * columns; i++) {
        Acc a = parts[i];
        for (npy_intp p = 1; p < pieces; p++) Op::combine(a, parts[p * outer * columns + i]);
        out[i] = Narrow<typename Op::Result, decltype(Op::finish(a, 1))>::from(Op::finish(a, gone.size));
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

// ---- choice by dtype ----------------------------------------------------------------------------

using Reducer = PyObject *(*)(Request &);

template <template <class> class Op, class... T>
void enter(Reducer *table, Types<T...>) {
    ((table[DTypeOf<T>::value] = reduce<Op<T>>), ...);
}

Reducer sums[DTYPES], products[DTYPES], means[DTYPES], maxima[DTYPES], minima[DTYPES], anys[DTYPES],
    alls[DTYPES];

PyObject *run(Reducer *table, Request &r) { return table[r.type] ? table[r.type](r) : not_here(); }

// Sums and products: `dtype` says what to convert to first.
PyObject *accumulate(Reducer *table, PyObject *const *args, Py_ssize_t n, PyObject *names) {
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

PyObject *sum(PyObject *const *a, Py_ssize_t n, PyObject *names) { return accumulate(sums, a, n, names); }
PyObject *prod(PyObject *const *a, Py_ssize_t n, PyObject *names) {
    return accumulate(products, a, n, names);
}
PyObject *mean(PyObject *const *a, Py_ssize_t n, PyObject *names) { return accumulate(means, a, n, names); }

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

bool by_columns(const Request &r) {
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

// ---- argmax, argmin -----------------------------------------------------------------------------

template <class T>
CLONES npy_intp first_equal(const T *x, npy_intp n, Compute<T> value) {
    for (npy_intp i = 0; i < n; i += 256) {  // blocks are searched at once, then the one that has it
        npy_intp m = std::min<npy_intp>(256, n - i);
        int found = 0;
        for (npy_intp j = 0; j < m; j++)
            found |= (widen(x[i + j]) == value) | (widen(x[i + j]) != widen(x[i + j]));
        if (!found) continue;
        for (npy_intp j = 0; j < m; j++)
            if (widen(x[i + j]) == value || widen(x[i + j]) != widen(x[i + j])) return i + j;
    }
    return 0;
}

// Is x before `best` in rank: strictly better, or the first NaN?
template <bool MAX, class C>
INLINE bool outranks(C x, C best) {
    bool better = MAX ? x > best : x < best;
    return better | ((x != x) & (best == best));
}

template <bool MAX, class T>
CLONES void column_places(const T *x, npy_intp n, int64_t row, Compute<T> *best, int64_t *places) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        Compute<T> v = widen(x[i]);
        bool wins = outranks<MAX>(v, best[i]);
        best[i] = wins ? v : best[i];
        places[i] = wins ? row : places[i];
    }
}

template <bool MAX, class T>
PyObject *place(Request &r) {
    using C = Compute<T>;
    PyArrayObject *out = r.result(I8);
    if (!out) return nullptr;
    int64_t *places = (int64_t *)PyArray_DATA(out);
    if (by_columns(r)) {
        for_columns<T>(r, [&](npy_intp first, npy_intp width, auto rows) {
            C best[BAND];
            rows([&](const T *x, npy_intp row) {
                if (row == 0) {
                    for (npy_intp i = 0; i < width; i++) best[i] = widen(x[i]), places[first + i] = 0;
                } else {
                    column_places<MAX>(x, width, row, best, places + first);
                }
            });
        });
        return (PyObject *)out;
    }
    bool done = for_rows<T>(r, [&](npy_intp k, auto rows) {
        C best = C();
        rows([&](const T *x, npy_intp n, npy_intp start) {
            for (npy_intp i = 0; i < n; i += 4096) {  // a block is searched while the cache holds it
                npy_intp m = std::min<npy_intp>(4096, n - i);
                C block = Extreme<MAX, T>::identity();
                row_extreme<MAX>(x + i, m, block);
                if (start + i && !outranks<MAX>(block, best)) continue;
                best = block;
                places[k] = start + i + first_equal(x + i, m, block);
            }
        });
    });
    if (!done) Py_CLEAR(out);
    return (PyObject *)out;
}

// ---- logsumexp ----------------------------------------------------------------------------------

template <class T>
CLONES void exp_sum(const T *x, npy_intp n, Compute<T> peak, double &total) {
    using C = Compute<T>;
    for (npy_intp begin = 0; begin < n; begin += 1024) {
        npy_intp m = std::min<npy_intp>(1024, n - begin);
        const T *a = x + begin;
        C s = 0;
        REDUCE(+ : s) for (npy_intp i = 0; i < m; i++) s += vec::exp(widen(a[i]) - peak);
        total += double(s);
    }
}
template <class T>
CLONES void column_exp_sum(const T *x, npy_intp n, const Compute<T> *peak, double *total) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) total[i] += double(vec::exp(widen(x[i]) - peak[i]));
}

template <class T>
PyObject *log_sum_exp(Request &r) {
    using C = Compute<T>;
    PyArrayObject *out = r.result(DTypeOf<T>::value);
    if (!out) return nullptr;
    T *data = (T *)PyArray_DATA(out);
    auto finish = [](double total, C peak) { return Narrow<T, C>::from(C(std::log(total) + double(peak))); };
    if (by_columns(r)) {
        for_columns<T>(r, [&](npy_intp first, npy_intp width, auto rows) {
            C peak[BAND];
            double total[BAND] = {};
            std::fill(peak, peak + width, Max<T>::identity());
            rows([&](const T *x, npy_intp) { column_extreme<true>(x, width, peak); });
            for (npy_intp i = 0; i < width; i++) peak[i] = std::isinf(peak[i]) ? C(0) : peak[i];
            rows([&](const T *x, npy_intp) { column_exp_sum(x, width, peak, total); });
            for (npy_intp i = 0; i < width; i++) data[first + i] = finish(total[i], peak[i]);
        });
        return (PyObject *)out;
    }
    bool done = for_rows<T>(r, [&](npy_intp k, auto rows) {
        C peak = Max<T>::identity();
        rows([&](const T *x, npy_intp n, npy_intp) { Max<T>::row(x, n, peak); });
        if (r.gone.size == 0 || std::isinf(peak)) peak = 0;
        double total = 0;
        rows([&](const T *x, npy_intp n, npy_intp) { exp_sum(x, n, peak, total); });
        data[k] = finish(total, peak);
    });
    if (!done) Py_CLEAR(out);
    return (PyObject *)out;
}

// ---- mean and squared distances -----------------------------------------------------------------

template <class T>
CLONES void squares(const T *x, npy_intp n, Compute<T> middle, double &total) {
    using C = Compute<T>;
    for (npy_intp begin = 0; begin < n; begin += 1024) {
        npy_intp m = std::min<npy_intp>(1024, n - begin);
        const T *a = x + begin;
        C s = 0;
        REDUCE(+ : s) for (npy_intp i = 0; i < m; i++) {
            C d = widen(a[i]) - middle;
            s += d * d;
        }
        total += double(s);
    }
}
template <class T>
CLONES void column_total(const T *x, npy_intp n, double *total) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) total[i] += double(widen(x[i]));
}
template <class T>
CLONES void column_squares(const T *x, npy_intp n, const Compute<T> *middle, double *total) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        Compute<T> d = widen(x[i]) - middle[i];
        total[i] += double(d * d);
    }
}

template <class T>
PyObject *moment_pair(Request &r) {
    using C = Compute<T>;
    PyArrayObject *first_out = r.result(DTypeOf<T>::value), *second_out = r.result(DTypeOf<T>::value);
    if (!first_out || !second_out) {
        Py_XDECREF((PyObject *)first_out), Py_XDECREF((PyObject *)second_out);
        return nullptr;
    }
    T *middles = (T *)PyArray_DATA(first_out), *spreads = (T *)PyArray_DATA(second_out);
    double count = double(r.gone.size);
    bool done = true;
    r.take_in_memory_order();
    if (by_columns(r)) {
        for_columns<T>(r, [&](npy_intp first, npy_intp width, auto rows) {
            double total[BAND] = {}, spread[BAND] = {};
            C middle[BAND];
            rows([&](const T *x, npy_intp) { column_total(x, width, total); });
            for (npy_intp i = 0; i < width; i++) middle[i] = C(total[i] / count);
            rows([&](const T *x, npy_intp) { column_squares(x, width, middle, spread); });
            for (npy_intp i = 0; i < width; i++) {
                middles[first + i] = Narrow<T, C>::from(middle[i]);
                spreads[first + i] = Narrow<T, C>::from(C(spread[i]));
            }
        });
    } else {
        done = for_rows<T>(r, [&](npy_intp k, auto rows) {
            double total = 0, spread = 0;
            rows([&](const T *x, npy_intp n, npy_intp) { row_sum(x, n, total); });
            C middle = C(total / count);
            rows([&](const T *x, npy_intp n, npy_intp) { squares(x, n, middle, spread); });
            middles[k] = Narrow<T, C>::from(middle);
            spreads[k] = Narrow<T, C>::from(C(spread));
        });
    }
    if (!done) {
        Py_DECREF(first_out), Py_DECREF(second_out);
        return nullptr;
    }
    return Py_BuildValue("(NN)", first_out, second_out);
}

Reducer argmaxima[DTYPES], argminima[DTYPES], logsums[DTYPES], moment_pairs[DTYPES];

template <class... T>
void enter_row_reductions(Types<T...>) {
    ((argmaxima[DTypeOf<T>::value] = place<true, T>), ...);
    ((argminima[DTypeOf<T>::value] = place<false, T>), ...);
}
template <class... T>
void enter_float_reductions(Types<T...>) {
    ((logsums[DTypeOf<T>::value] = log_sum_exp<T>), ...);
    ((moment_pairs[DTypeOf<T>::value] = moment_pair<T>), ...);
}

// ---- scans --------------------------------------------------------------------------------------

constexpr npy_intp SCAN_WIDTH = 256;

// Calls body(at, n, inner, width) for each band of at most SCAN_WIDTH columns along `axis`: `at` is
// where it begins, and its next of `n` rows is `inner` elements on.
template <class Body>
void in_scan_bands(PyArrayObject *x, int axis, Body body) {
    npy_intp outer = 1, inner = 1, n = PyArray_DIM(x, axis);
    for (int d = 0; d < axis; d++) outer *= PyArray_DIM(x, d);
    for (int d = axis + 1; d < PyArray_NDIM(x); d++) inner *= PyArray_DIM(x, d);
    if (!PyArray_SIZE(x)) return;
    npy_intp blocks = (inner + SCAN_WIDTH - 1) / SCAN_WIDTH;
    npy_intp grain = std::max<npy_intp>(1, PIECE / 2 / (n * std::min(inner, SCAN_WIDTH)));
    PyThreadState *state = PyEval_SaveThread();
    parallel_for(outer * blocks, grain, [&](int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; item++) {
            npy_intp first = item % blocks * SCAN_WIDTH;
            body(item / blocks * n * inner + first, n, inner, std::min(SCAN_WIDTH, inner - first));
        }
    }, 1);
    PyEval_RestoreThread(state);
}

template <bool PRODUCT, class A>
INLINE A step(A a, A x) { return PRODUCT ? a * x : a + x; }

template <class T>
using ScanType = std::conditional_t<std::is_floating_point_v<Compute<T>>,
                                    std::conditional_t<sizeof(T) == 2, float, double>, uint64_t>;

template <bool PRODUCT, class T>
CLONES void scan_columns(const T *x, ScanType<T> *acc, typename Sum<T>::Result *out, npy_intp n) {
    using R = typename Sum<T>::Result;
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        acc[i] = step<PRODUCT>(acc[i], ScanType<T>(widen(x[i])));
        out[i] = Narrow<R, std::conditional_t<std::is_same_v<R, int64_t>, int64_t, Compute<R>>>::from(acc[i]);
    }
}

template <bool PRODUCT, class T>
PyArrayObject *scan(PyArrayObject *x, int axis) {
    using A = ScanType<T>;
    using R = typename Sum<T>::Result;
    PyArray_Descr *descr = descr_of(DTypeOf<R>::value);
    if (!descr) return nullptr;
    PyArrayObject *out = (PyArrayObject *)PyArray_NewFromDescr(
        &PyArray_Type, descr, PyArray_NDIM(x), PyArray_DIMS(x), nullptr, nullptr, 0, nullptr);
    PyArrayObject *c = out ? row_major(x) : nullptr;
    if (!c) {
        Py_XDECREF((PyObject *)out);
        return nullptr;
    }
    const T *from = (const T *)PyArray_DATA(c);
    R *to = (R *)PyArray_DATA(out);
    in_scan_bands(x, axis, [&](npy_intp at, npy_intp n, npy_intp inner, npy_intp width) {
        if (inner == 1) {
            A acc = PRODUCT ? 1 : 0;
            for (npy_intp i = 0; i < n; i++) {
                acc = step<PRODUCT>(acc, A(widen(from[at + i])));
                to[at + i] = Narrow<R, std::conditional_t<std::is_same_v<R, int64_t>, int64_t,
                                                          Compute<R>>>::from(acc);
            }
            return;
        }
        A acc[SCAN_WIDTH];
        std::fill(acc, acc + width, A(PRODUCT ? 1 : 0));
        for (npy_intp i = 0; i < n; i++, at += inner)
            scan_columns<PRODUCT>(from + at, acc, to + at, width);
    });
    Py_DECREF(c);
    return out;
}

using Scan = PyArrayObject *(*)(PyArrayObject *, int);
Scan scans[2][DTYPES];

template <class... T>
void enter_scans(Types<T...>) {
    ((scans[0][DTypeOf<T>::value] = scan<false, T>), ...);
    ((scans[1][DTypeOf<T>::value] = scan<true, T>), ...);
}

// (array, axis): what the table has for the array's type, with the axis counted from the front
template <class Run>
PyObject *along_axis(const Run *runs, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (names || n != 2 || !is_plain(args[0]) || !PyLong_Check(args[1])) return not_here();
    PyArrayObject *x = (PyArrayObject *)args[0];
    DType type = dtype_of(PyArray_TYPE(x));
    long axis = PyLong_AsLong(args[1]);
    if (PyErr_Occurred()) PyErr_Clear();
    if (axis < 0) axis += PyArray_NDIM(x);
    if (type == NONE || !runs[type] || axis < 0 || axis >= PyArray_NDIM(x)) return not_here();
    return (PyObject *)runs[type](x, int(axis));
}

template <int PRODUCT>
PyObject *scan_call(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    return along_axis(scans[PRODUCT], args, n, names);
}

// The largest (or smallest) so far and its place: of equal elements the last, and every NaN.
template <bool MAX, class T>
INLINE void keep_better(T x, npy_intp i, T &best, int64_t &place) {
    auto a = widen(x), b = widen(best);
    bool better = (MAX ? a >= b : a <= b) | (a != a);
    best = better ? x : best;
    place = better ? i : place;
}
template <bool MAX, class T>
CLONES void run_along(const T *x, npy_intp n, T *values, int64_t *places) {
    T best = x[0];
    int64_t place = 0;
    for (npy_intp i = 0; i < n; i++) {
        keep_better<MAX>(x[i], i, best, place);
        values[i] = best, places[i] = place;
    }
}
template <bool MAX, class T>
CLONES void run_across(const T *x, npy_intp i, npy_intp n, T *best, int64_t *place, T *values,
                       int64_t *places) {
    INDEPENDENT
    for (npy_intp k = 0; k < n; k++) {
        keep_better<MAX>(x[k], i, best[k], place[k]);
        values[k] = best[k], places[k] = place[k];
    }
}

template <bool MAX, class T>
PyObject *run_extremes(PyArrayObject *x, int axis) {
    PyArrayObject *c = row_major(x);
    PyObject *first = c ? PyArray_NewLikeArray(c, NPY_CORDER, nullptr, 0) : nullptr;
    PyObject *second = first ? PyArray_SimpleNew(PyArray_NDIM(x), PyArray_DIMS(x), NPY_INT64) : nullptr;
    if (!second) {
        Py_XDECREF((PyObject *)c), Py_XDECREF(first);
        return nullptr;
    }
    const T *from = (const T *)PyArray_DATA(c);
    T *values = (T *)PyArray_DATA((PyArrayObject *)first);
    int64_t *places = (int64_t *)PyArray_DATA((PyArrayObject *)second);
    in_scan_bands(x, axis, [&](npy_intp at, npy_intp n, npy_intp inner, npy_intp width) {
        if (inner == 1) return run_along<MAX>(from + at, n, values + at, places + at);
        T best[SCAN_WIDTH];
        int64_t place[SCAN_WIDTH];
        std::copy(from + at, from + at + width, best);
        for (npy_intp i = 0; i < n; i++, at += inner)
            run_across<MAX>(from + at, i, width, best, place, values + at, places + at);
    });
    Py_DECREF(c);
    return Py_BuildValue("(NN)", first, second);
}

using RunExtremes = PyObject *(*)(PyArrayObject *, int);
RunExtremes extremes_so_far[2][DTYPES];

template <class... T>
void enter_extremes(Types<T...>) {
    ((extremes_so_far[0][DTypeOf<T>::value] = run_extremes<false, T>), ...);
    ((extremes_so_far[1][DTypeOf<T>::value] = run_extremes<true, T>), ...);
}

template <int MAX>
PyObject *extremes_call(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    return along_axis(extremes_so_far[MAX], args, n, names);
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
    enter_row_reductions(Integers{}), enter_row_reductions(Floats{});
    enter_float_reductions(Floats{});
    enter_scans(Bools{}), enter_scans(Integers{}), enter_scans(Floats{});
    enter_extremes(Bools{}), enter_extremes(Integers{}), enter_extremes(Floats{});
    return make_function(m, "sum", sum) || make_function(m, "prod", prod) ||
                   make_function(m, "mean", mean) || make_function(m, "max", plain<maxima, true>) ||
                   make_function(m, "min", plain<minima, true>) ||
                   make_function(m, "any", plain<anys, false>) ||
                   make_function(m, "all", plain<alls, false>) ||
                   make_function(m, "argmax", plain<argmaxima, true>) ||
                   make_function(m, "argmin", plain<argminima, true>) ||
                   make_function(m, "logsumexp", plain<logsums, false>) ||
                   make_function(m, "moments", plain<moment_pairs, false>) ||
                   make_function(m, "cumsum", scan_call<0>) || make_function(m, "cumprod", scan_call<1>) ||
                   make_function(m, "cummin", extremes_call<0>) ||
                   make_function(m, "cummax", extremes_call<1>)
               ? -1
               : 0;
}
