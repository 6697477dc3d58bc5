// Reductions that need more than one pass, or a place.
#include "kernels/reduction/reductions.h"

namespace {

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

// The extremes of up to TOGETHER rows of n elements, turned (so that the j-th elements lie side by side),
// and their places.
constexpr npy_intp TOGETHER = 64, SHORT = 64;
template <bool MAX, class T>
CLONES void turned_places(const T *x, npy_intp n, T *values, int64_t *places) {
    using C = Compute<T>;
    C best[TOGETHER];
    int32_t at[TOGETHER] = {};
    for (npy_intp i = 0; i < TOGETHER; i++) best[i] = widen(x[i]);
    for (npy_intp j = 1; j < n; j++) {
        x += TOGETHER;
        INDEPENDENT
        for (npy_intp i = 0; i < TOGETHER; i++) {
            C v = widen(x[i]);
            bool wins = outranks<MAX>(v, best[i]);
            best[i] = wins ? v : best[i];
            at[i] = wins ? int32_t(j) : at[i];
        }
    }
    for (npy_intp i = 0; i < TOGETHER; i++) places[i] = at[i], values[i] = Narrow<T, C>::from(best[i]);
}

inline bool has_short_rows(const Request &r) {
    return r.rows_contiguous() && r.gone.n == 1 && r.gone.size <= SHORT && r.kept.size >= 16;
}

// Of short rows; `values` may be null.
template <bool MAX, class T>
void short_row_places(const Request &r, T *values, int64_t *places) {
    const Dims &kept = r.kept;
    npy_intp inner = kept.n ? kept.shape[kept.n - 1] : 1, step = kept.n ? kept.strides[kept.n - 1] : 0;
    PyThreadState *state = PyArray_SIZE(r.x) >= PIECE ? PyEval_SaveThread() : nullptr;
    parallel_for(kept.size, PIECE / r.gone.size, [&](int64_t begin, int64_t end) {
        T turned[SHORT * TOGETHER] = {}, best[TOGETHER];
        int64_t at[TOGETHER];
        for (int64_t k = begin; k < end;) {
            npy_intp count = std::min<npy_intp>({TOGETHER, inner - k % inner, npy_intp(end - k)});
            const T *base = (const T *)(PyArray_BYTES(r.x) + kept.offset(k, kept.n));
            turn_rows(base, step, count, r.gone.size, TOGETHER, turned);
            turned_places<MAX>(turned, r.gone.size, best, at);
            std::copy(at, at + count, places + k);
            if (values) std::copy(best, best + count, values + k);
            k += count;
        }
    }, 1);
    if (state) PyEval_RestoreThread(state);
}

// Goes on in a row, of which `start` elements have been searched.
template <bool MAX, class T>
void search(const T *x, npy_intp n, npy_intp start, Compute<T> &best, int64_t &place) {
    constexpr npy_intp length = 4096;
    npy_intp found = -1;
    for (npy_intp i = 0; i < n; i += length) {
        Compute<T> block = Extreme<MAX, T>::identity();
        row_extreme<MAX>(x + i, std::min(length, n - i), block);
        if (start + i && !outranks<MAX>(block, best)) continue;
        best = block, found = i;
    }
    if (found >= 0) place = start + found + first_equal(x + found, std::min(length, n - found), best);
}

template <bool MAX, class T>
void long_row_places(const Request &r, const LongRows &rows, int64_t *places) {
    std::vector<Compute<T>> best(rows.all());
    std::vector<int64_t> at(rows.all());
    for_pieces<T>(r, rows, [&](npy_intp piece, const T *x, npy_intp n) {
        search<MAX>(x, n, 0, best[piece], at[piece]);
    });
    for (npy_intp k = 0; k < rows.count; k++) {
        npy_intp found = k * rows.pieces;
        for (npy_intp piece = found + 1; piece < (k + 1) * rows.pieces; piece++)
            if (outranks<MAX>(best[piece], best[found])) found = piece;
        places[k] = rows.first(found) + at[found];
    }
}

template <bool MAX, class T>
PyObject *place(Request &r) {
    using C = Compute<T>;
    PyArrayObject *out = r.result(I8);
    if (!out) return nullptr;
    int64_t *places = (int64_t *)PyArray_DATA(out);
    if (has_short_rows(r)) return short_row_places<MAX, T>(r, nullptr, places), (PyObject *)out;
    if constexpr (turns_rows<T>) {
        LongRows rows;
        if (has_long_rows(r, rows)) return long_row_places<MAX, T>(r, rows, places), (PyObject *)out;
    }
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
        rows([&](const T *x, npy_intp n, npy_intp start) { search<MAX>(x, n, start, best, places[k]); });
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
    total += sum_of_terms<double, C>(n, [x, middle](npy_intp i) INLINE_LAMBDA {
        C d = widen(x[i]) - middle;
        return d * d;
    });
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
    LongRows long_rows;
    if (has_long_rows(r, long_rows)) {
        std::vector<double> parts(long_rows.all());
        std::vector<C> middle(long_rows.count);
        for_pieces<T>(r, long_rows, [&](npy_intp piece, const T *x, npy_intp n) {
            parts[piece] = 0, row_sum(x, n, parts[piece]);
        });
        for (npy_intp k = 0; k < long_rows.count; k++) middle[k] = C(long_rows.sum(parts, k) / count);
        for_pieces<T>(r, long_rows, [&](npy_intp piece, const T *x, npy_intp n) {
            parts[piece] = 0, squares(x, n, middle[long_rows.row(piece)], parts[piece]);
        });
        for (npy_intp k = 0; k < long_rows.count; k++)
            middles[k] = Narrow<T, C>::from(middle[k]), spreads[k] = Narrow<T, C>::from(C(long_rows.sum(parts, k)));
    } else if (by_columns(r)) {
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

// The values that have those places too, if there is an element to choose: (values, places).
template <bool MAX, class T>
PyObject *value_and_place(Request &r) {
    if (has_short_rows(r)) {
        PyArrayObject *values = r.result(DTypeOf<T>::value), *places = values ? r.result(I8) : nullptr;
        if (!places) return Py_XDECREF((PyObject *)values), nullptr;
        short_row_places<MAX>(r, (T *)PyArray_DATA(values), (int64_t *)PyArray_DATA(places));
        return Py_BuildValue("(NN)", values, places);
    }
    PyObject *places = place<MAX, T>(r), *values = places ? reduce<Extreme<MAX, T>>(r) : nullptr;
    if (!values) {
        Py_XDECREF(places);
        return nullptr;
    }
    return Py_BuildValue("(NN)", values, places);
}
Reducer maxima_at[DTYPES], minima_at[DTYPES];

template <class... T>
void enter_places(Types<T...>) {
    ((maxima_at[DTypeOf<T>::value] = value_and_place<true, T>), ...);
    ((minima_at[DTypeOf<T>::value] = value_and_place<false, T>), ...);
}

// ---- variances ----------------------------------------------------------------------------------

enum Wanted { SPREAD = 1, MEAN = 2, ROOT = 4 };

template <class T>
void divide_all(PyObject *array, T free, bool root) {
    T *x = (T *)PyArray_DATA((PyArrayObject *)array);
    for (npy_intp i = 0, n = PyArray_SIZE((PyArrayObject *)array); i < n; i++) {
        x[i] /= free;
        if (root) x[i] = std::sqrt(x[i]);
    }
}

// (x, dim, correction, keepdim)
template <int WANTED>
PyObject *variance(PyObject *const *a, Py_ssize_t n, PyObject *names) {
    Request r;
    if (n != 4 || names) return not_here();
    PyObject *own[] = {a[0], a[1], a[3]};
    if (!read(r, own, 3, nullptr) || (r.type != F4 && r.type != F8)) return not_here();
    double correction = a[2] == Py_None ? 1 : PyFloat_AsDouble(a[2]);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return not_here();
    }
    double free = double(r.gone.size) - correction;
    PyObject *pair = run(moment_pairs, r);
    if (!pair) return nullptr;
    static const char *const called[] = {"", "var", "", "var_mean", "", "std", "", "std_mean"};
    if (free <= 0) {
        free = 0;
        if (PyErr_WarnFormat(PyExc_UserWarning, 1,
                             "%s(): degrees of freedom is <= 0. Correction should be strictly less than "
                             "the reduction factor (input numel divided by output numel).",
                             called[WANTED]) < 0) {
            Py_DECREF(pair);
            return nullptr;
        }
    }
    PyObject *middle = PyTuple_GET_ITEM(pair, 0), *squares = PyTuple_GET_ITEM(pair, 1);
    if (r.type == F4) divide_all<float>(squares, float(free), WANTED & ROOT);
    else divide_all<double>(squares, free, WANTED & ROOT);
    Py_INCREF(squares);
    PyObject *found = squares;
    if (WANTED & MEAN) {
        Py_INCREF(middle);
        found = Py_BuildValue("(NN)", squares, middle);
    }
    Py_DECREF(pair);
    return found;
}

// ---- norms --------------------------------------------------------------------------------------

struct Size {
    template <class C>
    static INLINE C of(C x) { return std::abs(x); }
    static double root(double total) { return total; }
};
struct Square {
    template <class C>
    static INLINE C of(C x) { return x * x; }
    static double root(double total) { return std::sqrt(total); }
};
template <class Term, class T>
CLONES void row_terms(const T *x, npy_intp n, double &total) {
    total += sum_of_terms<double, Compute<T>>(n, [x](npy_intp i) INLINE_LAMBDA { return Term::of(widen(x[i])); });
}
template <class Term, class T>
CLONES void column_terms(const T *x, npy_intp n, Compute<T> *total) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) total[i] += Term::of(widen(x[i]));
}
template <class Term, class T>
struct SumNorm {
    using Element = T;
    using Acc = double;
    using Part = Compute<T>;
    using Result = T;
    static Acc identity() { return 0; }
    static void row(const T *x, npy_intp n, Acc &a) { row_terms<Term>(x, n, a); }
    static void column(const T *x, npy_intp n, Part *a) { column_terms<Term>(x, n, a); }
    static void combine(Acc &a, Acc b) { a += b; }
    static Part finish(Acc a, npy_intp) { return Part(Term::root(a)); }
};

template <bool MAX, class T>
CLONES void row_extreme_size(const T *x, npy_intp n, Compute<T> &best) {
    using C = Compute<T>;
    C m = best;
    std::conditional_t<sizeof(C) == 8, int64_t, int32_t> nan = m != m;
    if constexpr (MAX) {
        REDUCE2(max : m, | : nan)
        for (npy_intp i = 0; i < n; i++) {
            C size = std::abs(widen(x[i]));
            m = size > m ? size : m, nan |= size != size;
        }
    } else {
        REDUCE2(min : m, | : nan)
        for (npy_intp i = 0; i < n; i++) {
            C size = std::abs(widen(x[i]));
            m = size < m ? size : m, nan |= size != size;
        }
    }
    best = nan ? std::numeric_limits<C>::quiet_NaN() : m;
}
template <bool MAX, class T>
CLONES void column_extreme_size(const T *x, npy_intp n, Compute<T> *best) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) best[i] = extreme<MAX>(best[i], std::abs(widen(x[i])));
}
template <bool MAX, class T>
struct ExtremeNorm {
    using Element = T;
    using Acc = Compute<T>;
    using Part = Acc;
    using Result = T;
    static Acc identity() { return MAX ? Acc(0) : std::numeric_limits<Acc>::infinity(); }
    static void row(const T *x, npy_intp n, Acc &a) { row_extreme_size<MAX>(x, n, a); }
    static void column(const T *x, npy_intp n, Acc *a) { column_extreme_size<MAX>(x, n, a); }
    static void combine(Acc &a, Acc b) { a = extreme<MAX>(a, b); }
    static Acc finish(Acc a, npy_intp) { return a; }
};

// Of any other order.
template <class T>
CLONES void sum_of_powers(const T *x, npy_intp n, double p, double &total) {
    using C = Compute<T>;
    if (p == 0) {
        for (npy_intp i = 0; i < n; i++) total += widen(x[i]) != 0;
    } else if (p == 3) {
        for (npy_intp begin = 0; begin < n; begin += 1024) {
            npy_intp m = std::min<npy_intp>(1024, n - begin);
            const T *a = x + begin;
            C s = 0;
            REDUCE(+ : s) for (npy_intp i = 0; i < m; i++) s += std::abs(widen(a[i]) * widen(a[i]) * widen(a[i]));
            total += double(s);
        }
    } else if constexpr (std::is_same_v<C, float>) {
        double s = 0;
        REDUCE(+ : s) for (npy_intp i = 0; i < n; i++) s += double(vec::pow(std::abs(widen(x[i])), float(p)));
        total += s;
    } else {
        for (npy_intp i = 0; i < n; i++) total += std::pow(double(std::abs(widen(x[i]))), p);
    }
}
template <class T>
PyObject *power_norm(Request &r, double p) {
    PyArrayObject *out = r.result(DTypeOf<T>::value);
    if (!out) return nullptr;
    T *data = (T *)PyArray_DATA(out);
    r.take_in_memory_order();
    auto found = [p](double total) {
        return Narrow<T, Compute<T>>::from(Compute<T>(p == 0 ? total : std::pow(total, 1 / p)));
    };
    LongRows long_rows;
    if (has_long_rows(r, long_rows)) {
        std::vector<double> parts(long_rows.all());
        for_pieces<T>(r, long_rows, [&](npy_intp piece, const T *x, npy_intp n) { sum_of_powers(x, n, p, parts[piece]); });
        for (npy_intp k = 0; k < long_rows.count; k++) data[k] = found(long_rows.sum(parts, k));
        return (PyObject *)out;
    }
    bool done = for_rows<T>(r, [&](npy_intp k, auto rows) {
        double total = 0;
        rows([&](const T *x, npy_intp n, npy_intp) { sum_of_powers(x, n, p, total); });
        data[k] = found(total);
    });
    if (!done) Py_CLEAR(out);
    return (PyObject *)out;
}

Reducer euclidean[DTYPES], absolute[DTYPES], largest[DTYPES], smallest[DTYPES];

template <class... T>
void enter_norms(Types<T...>) {
    ((euclidean[DTypeOf<T>::value] = reduce<SumNorm<Square, T>>), ...);
    ((absolute[DTypeOf<T>::value] = reduce<SumNorm<Size, T>>), ...);
    ((largest[DTypeOf<T>::value] = reduce<ExtremeNorm<true, T>>), ...);
    ((smallest[DTypeOf<T>::value] = reduce<ExtremeNorm<false, T>>), ...);
}

// (x, ord, dim, keepdim, dtype)
PyObject *vector_norm(PyObject *const *a, Py_ssize_t n, PyObject *names) {
    Request r;
    if (n != 5 || names || a[4] != Py_None || !(PyFloat_Check(a[1]) || PyLong_Check(a[1])))
        return not_here();
    PyObject *own[] = {a[0], a[2], a[3]};
    if (!read(r, own, 3, nullptr)) return not_here();
    double p = PyFloat_AsDouble(a[1]);
    if (PyErr_Occurred() || ((p < 0 || std::isinf(p)) && !r.gone.size)) {
        PyErr_Clear();
        return not_here();
    }
    if (p == 1 || p == 2 || std::isinf(p))
        return run(p == 1 ? absolute : p == 2 ? euclidean : p > 0 ? largest : smallest, r);
    switch (r.type) {
        case F2: return power_norm<Half>(r, p);
        case BF: return power_norm<BFloat>(r, p);
        case F4: return power_norm<float>(r, p);
        case F8: return power_norm<double>(r, p);
        default: return not_here();
    }
}

}  // namespace

int register_statistics(PyObject *m) {
    enter_row_reductions(UsualIntegers{}), enter_row_reductions(ReducedFloats{});
    enter_places(UsualIntegers{}), enter_places(ReducedFloats{});
    enter_float_reductions(ReducedFloats{}), enter_norms(ReducedFloats{});
    static const struct {
        const char *name;
        Native function;
    } functions[] = {{"argmax", plain<argmaxima, true>}, {"argmin", plain<argminima, true>},
                     {"max_along", plain<maxima_at, true>}, {"min_along", plain<minima_at, true>},
                     {"logsumexp", plain<logsums, false>}, {"moments", plain<moment_pairs, false>},
                     {"var", variance<SPREAD>}, {"std", variance<SPREAD | ROOT>},
                     {"var_mean", variance<SPREAD | MEAN>},
                     {"std_mean", variance<SPREAD | ROOT | MEAN>}, {"vector_norm", vector_norm}};
    for (auto &f : functions)
        if (make_function(m, f.name, f.function)) return -1;
    return 0;
}
