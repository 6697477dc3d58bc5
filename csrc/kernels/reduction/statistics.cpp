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

template <bool MAX, class T>
PyObject *place(Request &r) {
    using C = Compute<T>;
    PyArrayObject *out = r.result(I8);
    if (!out) return nullptr;
    int64_t *places = (int64_t *)PyArray_DATA(out);
    if (has_short_rows(r)) return short_row_places<MAX, T>(r, nullptr, places), (PyObject *)out;
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

enum Order { COUNT, ABSOLUTE, EUCLIDEAN, LARGEST, SMALLEST, POWER };

template <class T>
CLONES void sum_of_squares(const T *x, npy_intp n, double &total) {
    for (npy_intp begin = 0; begin < n; begin += 1024) {
        npy_intp m = std::min<npy_intp>(1024, n - begin);
        const T *a = x + begin;
        Compute<T> s = 0;
        REDUCE(+ : s) for (npy_intp i = 0; i < m; i++) s += widen(a[i]) * widen(a[i]);
        total += double(s);
    }
}
template <class T>
CLONES void sum_of_sizes(const T *x, npy_intp n, double &total) {
    for (npy_intp begin = 0; begin < n; begin += 1024) {
        npy_intp m = std::min<npy_intp>(1024, n - begin);
        const T *a = x + begin;
        Compute<T> s = 0;
        REDUCE(+ : s) for (npy_intp i = 0; i < m; i++) s += std::abs(widen(a[i]));
        total += double(s);
    }
}

template <class T>
CLONES void sum_of_powers(const T *x, npy_intp n, double p, double &total) {
    using C = Compute<T>;
    if (p == 3) {
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
double norm_of(Order order, double p, const T *x, npy_intp n, double total) {
    switch (order) {
        case EUCLIDEAN: sum_of_squares(x, n, total); return total;
        case ABSOLUTE: sum_of_sizes(x, n, total); return total;
        case COUNT:
            for (npy_intp i = 0; i < n; i++) total += widen(x[i]) != 0;
            return total;
        case LARGEST:
            for (npy_intp i = 0; i < n; i++) total = extreme<true>(total, double(std::abs(widen(x[i]))));
            return total;
        case SMALLEST:
            for (npy_intp i = 0; i < n; i++) total = extreme<false>(total, double(std::abs(widen(x[i]))));
            return total;
        case POWER: sum_of_powers(x, n, p, total); return total;
    }
    return total;
}

template <class T>
PyObject *norm(Request &r, Order order, double p) {
    PyArrayObject *out = r.result(DTypeOf<T>::value);
    if (!out) return nullptr;
    T *data = (T *)PyArray_DATA(out);
    r.take_in_memory_order();
    bool done = for_rows<T>(r, [&](npy_intp k, auto rows) {
        double total = order == SMALLEST ? std::numeric_limits<double>::infinity() : 0;
        rows([&](const T *x, npy_intp n, npy_intp) { total = norm_of(order, p, x, n, total); });
        if (order == EUCLIDEAN) total = std::sqrt(total);
        if (order == POWER) total = std::pow(total, 1 / p);
        data[k] = Narrow<T, Compute<T>>::from(Compute<T>(total));
    });
    if (!done) Py_CLEAR(out);
    return (PyObject *)out;
}

// (x, ord, dim, keepdim, dtype)
PyObject *vector_norm(PyObject *const *a, Py_ssize_t n, PyObject *names) {
    Request r;
    if (n != 5 || names || a[4] != Py_None || !(PyFloat_Check(a[1]) || PyLong_Check(a[1])))
        return not_here();
    PyObject *own[] = {a[0], a[2], a[3]};
    if (!read(r, own, 3, nullptr)) return not_here();
    double p = PyFloat_AsDouble(a[1]);
    Order order = p == 2 ? EUCLIDEAN : p == 1 ? ABSOLUTE : p == 0 ? COUNT
                  : !std::isinf(p) ? POWER : p > 0 ? LARGEST : SMALLEST;
    if (PyErr_Occurred() || ((p < 0 || order == LARGEST) && !r.gone.size)) {
        PyErr_Clear();
        return not_here();
    }
    switch (r.type) {
        case F2: return norm<Half>(r, order, p);
        case BF: return norm<BFloat>(r, order, p);
        case F4: return norm<float>(r, order, p);
        case F8: return norm<double>(r, order, p);
        default: return not_here();
    }
}

}  // namespace

int register_statistics(PyObject *m) {
    enter_row_reductions(UsualIntegers{}), enter_row_reductions(ReducedFloats{});
    enter_places(UsualIntegers{}), enter_places(ReducedFloats{});
    enter_float_reductions(ReducedFloats{});
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
