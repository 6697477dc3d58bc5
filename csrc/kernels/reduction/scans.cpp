// Running results along a dimension.
#include "kernels/reduction/reductions.h"

namespace {

// ---- scans --------------------------------------------------------------------------------------

constexpr npy_intp SCAN_WIDTH = 256;

// Calls body(at, n, inner, width) for each band of at most SCAN_WIDTH columns along `axis`: `at` is
// where it begins, and its next of `n` rows is `inner` elements on. Along the last axis `inner` is 1,
// and `width` says how many rows of n elements follow each other.
template <class Body>
void in_scan_bands(PyArrayObject *x, int axis, Body body) {
    npy_intp outer = 1, inner = 1, n = PyArray_NDIM(x) ? PyArray_DIM(x, axis) : 1;
    for (int d = 0; d < axis; d++) outer *= PyArray_DIM(x, d);
    for (int d = axis + 1; d < PyArray_NDIM(x); d++) inner *= PyArray_DIM(x, d);
    if (!PyArray_SIZE(x)) return;
    npy_intp blocks = (inner + SCAN_WIDTH - 1) / SCAN_WIDTH;
    npy_intp grain = std::max<npy_intp>(1, PIECE / 2 / (n * std::min(inner, SCAN_WIDTH)));
    PyThreadState *state = PyArray_SIZE(x) >= PIECE ? PyEval_SaveThread() : nullptr;
    parallel_for(outer * blocks, grain, [&](int64_t begin, int64_t end) {
        if (inner == 1) return body(begin * n, n, inner, npy_intp(end - begin));
        for (int64_t item = begin; item < end; item++) {
            npy_intp first = item % blocks * SCAN_WIDTH;
            body(item / blocks * n * inner + first, n, inner, std::min(SCAN_WIDTH, inner - first));
        }
    }, 1);
    if (state) PyEval_RestoreThread(state);
}

template <bool PRODUCT, class A>
INLINE A step(A a, A x) { return PRODUCT ? a * x : a + x; }

template <class T>
struct ScanTypeOf {
    using type = std::conditional_t<std::is_floating_point_v<Compute<T>>,
                                    std::conditional_t<sizeof(T) == 2, float, double>, uint64_t>;
};
template <class T>
struct ScanTypeOf<Complex<T>> {
    using type = Complex128;
};
template <class T>
using ScanType = typename ScanTypeOf<T>::type;

template <class T>
struct ScanResultOf {
    using type = typename Sum<T>::Result;
};
template <class T>
struct ScanResultOf<Complex<T>> {
    using type = Complex<T>;
};
template <class T>
using ScanResult = typename ScanResultOf<T>::type;

template <class T>
INLINE ScanType<T> scan_element(T x) {
    if constexpr (is_complex<T>) return {double(x.re), double(x.im)};
    else return ScanType<T>(widen(x));
}
template <class R, class A>
INLINE R scan_result(A a) {
    if constexpr (is_complex<R>) return {decltype(R::re)(a.re), decltype(R::re)(a.im)};
    else if constexpr (std::is_same_v<R, int64_t>) return int64_t(a);
    else return Narrow<R, Compute<R>>::from(Compute<R>(a));
}
template <bool PRODUCT, class A>
INLINE A scan_start() {
    if constexpr (is_complex<A>) return {PRODUCT ? 1.0 : 0.0, 0.0};
    else return A(PRODUCT ? 1 : 0);
}

template <bool PRODUCT, class T>
CLONES void scan_columns(const T *x, ScanType<T> *acc, ScanResult<T> *out, npy_intp n) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        acc[i] = step<PRODUCT>(acc[i], scan_element(x[i]));
        out[i] = scan_result<ScanResult<T>>(acc[i]);
    }
}

// `rows` rows of n elements, four at once, since each element waits for the one before.
template <bool PRODUCT, class T>
void scan_rows(const T *x, ScanResult<T> *out, npy_intp n, npy_intp rows) {
    using A = ScanType<T>;
    using R = ScanResult<T>;
    npy_intp row = 0;
    for (; row + 4 <= rows; row += 4, x += 4 * n, out += 4 * n) {
        A a = scan_start<PRODUCT, A>(), b = a, c = a, d = a;
        for (npy_intp i = 0; i < n; i++) {
            a = step<PRODUCT>(a, scan_element(x[i])), b = step<PRODUCT>(b, scan_element(x[n + i]));
            c = step<PRODUCT>(c, scan_element(x[2 * n + i])), d = step<PRODUCT>(d, scan_element(x[3 * n + i]));
            out[i] = scan_result<R>(a), out[n + i] = scan_result<R>(b);
            out[2 * n + i] = scan_result<R>(c), out[3 * n + i] = scan_result<R>(d);
        }
    }
    for (; row < rows; row++, x += n, out += n) {
        A a = scan_start<PRODUCT, A>();
        for (npy_intp i = 0; i < n; i++) {
            a = step<PRODUCT>(a, scan_element(x[i]));
            out[i] = scan_result<R>(a);
        }
    }
}

template <bool PRODUCT, class T>
PyArrayObject *scan(PyArrayObject *x, int axis) {
    using A = ScanType<T>;
    using R = ScanResult<T>;
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
        if (inner == 1) return scan_rows<PRODUCT>(from + at, to + at, n, width);
        A acc[SCAN_WIDTH];
        std::fill(acc, acc + width, scan_start<PRODUCT, A>());
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

// Is nothing to be converted to that type? Of a sum of integers the result has another one.
inline bool is_own_type(PyArrayObject *x, PyObject *type) {
    if (type == Py_None) return true;
    return PyArray_DescrCheck(type) && ((PyArray_Descr *)type)->type_num == PyArray_TYPE(x) &&
           (PyTypeNum_ISFLOAT(PyArray_TYPE(x)) || PyTypeNum_ISCOMPLEX(PyArray_TYPE(x)) ||
            PyArray_TYPE(x) == NPY_INT64);
}

// (array, axis[, type]): what the table has for the array's type, with the axis counted from the
// front; a number is a row of one element.
template <class Run>
PyObject *along_axis(const Run *runs, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (names || n < 2 || n > 3 || !is_plain(args[0]) || !PyLong_Check(args[1])) return not_here();
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (n == 3 && !is_own_type(x, args[2])) return not_here();
    DType type = dtype_of(PyArray_TYPE(x));
    long axis = PyLong_AsLong(args[1]);
    if (PyErr_Occurred()) PyErr_Clear();
    int rows = PyArray_NDIM(x) ? PyArray_NDIM(x) : 1;
    if (axis < 0) axis += rows;
    if (type == NONE || !runs[type] || axis < 0 || axis >= rows) return not_here();
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
CLONES void run_along(const T *x, npy_intp n, npy_intp rows, T *values, int64_t *places) {
    for (npy_intp row = 0; row < rows; row++, x += n, values += n, places += n) {
        T best = x[0];
        int64_t place = 0;
        for (npy_intp i = 0; i < n; i++) {
            keep_better<MAX>(x[i], i, best, place);
            values[i] = best, places[i] = place;
        }
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
        if (inner == 1) return run_along<MAX>(from + at, n, width, values + at, places + at);
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

// ---- log-sum-exps -------------------------------------------------------------------------------

template <class T>
INLINE T log_add(T a, T x) {
    T low = a < x ? a : x, high = a < x ? x : a;
    if (a != a || x != x) return a + x;
    return std::isinf(high) || low == high ? (low == high ? high + T(std::log(2.0)) * !std::isinf(high) : high)
                                           : high + std::log1p(std::exp(low - high));
}

template <class T>
PyArrayObject *log_scan(PyArrayObject *x, int axis) {
    PyArrayObject *c = row_major(x);
    PyArrayObject *out = c ? (PyArrayObject *)PyArray_NewLikeArray(c, NPY_CORDER, nullptr, 0) : nullptr;
    if (!out) {
        Py_XDECREF((PyObject *)c);
        return nullptr;
    }
    const T *from = (const T *)PyArray_DATA(c);
    T *to = (T *)PyArray_DATA(out);
    in_scan_bands(x, axis, [&](npy_intp at, npy_intp n, npy_intp inner, npy_intp width) {
        npy_intp rows = inner == 1 ? width : 1, columns = inner == 1 ? 1 : width;
        for (npy_intp row = 0; row < rows; row++, at += inner == 1) {
            std::copy(from + at, from + at + columns, to + at);
            for (npy_intp i = 1; i < n; i++, at += inner)
                for (npy_intp k = 0; k < columns; k++)
                    to[at + inner + k] = log_add(to[at + k], from[at + inner + k]);
        }
    });
    Py_DECREF(c);
    return out;
}

Scan log_scans[DTYPES];

PyObject *log_scan_call(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    return along_axis(log_scans, args, n, names);
}

}  // namespace

int register_scans(PyObject *m) {
    enter_scans(Bools{}), enter_scans(UsualIntegers{}), enter_scans(Floats{}), enter_scans(Complexes{});
    enter_extremes(Bools{}), enter_extremes(UsualIntegers{}), enter_extremes(Floats{});
    log_scans[F4] = log_scan<float>, log_scans[F8] = log_scan<double>;
    return make_function(m, "cumsum", scan_call<0>) || make_function(m, "cumprod", scan_call<1>) ||
                   make_function(m, "cummin", extremes_call<0>) ||
                   make_function(m, "cummax", extremes_call<1>) ||
                   make_function(m, "logcumsumexp", log_scan_call)
               ? -1
               : 0;
}
