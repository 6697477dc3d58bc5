// Fourier transforms: c2c, r2c and c2r of flambeau/kernels/linalg/fourier.py. Lengths whose prime factors
// are at most LARGEST_RADIX have passes of their own; others are convolutions (Bluestein's algorithm).
#include "kernels/fourier/fourier.h"
#include "kernels/network/module.h"

#include <list>
#include <mutex>
#include <utility>

#if defined(__has_builtin)
#if NETWORK_VECTORS && __has_builtin(__builtin_shufflevector)
#define FOURIER 1
#endif
#endif

#ifdef FOURIER

#define NETWORK_LOOPS "kernels/fourier/fourier_loops.h"
#include "kernels/network/isa.h"

namespace network {

// The plans used last, as long as they are small.
template <class T>
static std::shared_ptr<const Plan<T>> plan_of(int64_t n, bool split) {
    static std::mutex mutex;
    static std::list<std::pair<bool, std::shared_ptr<const Plan<T>>>> kept;
    constexpr int64_t most = 1 << 22;
    std::lock_guard<std::mutex> lock(mutex);
    int64_t total = 0;
    for (auto &entry : kept) {
        if (entry.second->n == n && entry.first == split) return entry.second;
        total += entry.second->elements();
    }
    auto plan = std::make_shared<const Plan<T>>(n, split);
    if (total + plan->elements() > most) kept.clear();
    if (plan->elements() <= most) kept.emplace_front(split, plan);
    return plan;
}

// ---- other lengths --------------------------------------------------------------------------------

// X_k = c_k Σ (x_j c_j) conj(c_{k-j}) with c_k = exp(-πi k²/n): a circular convolution of `size`.
template <class T>
struct Chirp {
    int64_t n, size;
    std::vector<T> factors, spectrum;  // c; and the transform of its conjugate, over `size`

    explicit Chirp(int64_t length) : n(length), size(1) {
        int64_t least = 2 * n - 1;
        size = std::numeric_limits<int64_t>::max();
        for (int64_t odd : {1, 3, 5, 9, 15}) {
            int64_t fit = odd;
            while (fit < least) fit *= 2;
            size = std::min(size, fit);
        }
        std::vector<double> wide(2 * size), found(2 * size);
        factors.resize(2 * n), spectrum.resize(2 * size);
        for (int64_t k = 0; k < n; k++) {
            double re, im;
            root_of_unity(int64_t((unsigned __int128)k * k % (2 * n)), 2 * n, re, im);
            factors[2 * k] = T(re), factors[2 * k + 1] = T(im);
            int64_t mirror = k ? size - k : 0;
            wide[2 * k] = wide[2 * mirror] = re, wide[2 * k + 1] = wide[2 * mirror + 1] = -im;
        }
        Plan<double> plan(size, true);
        NETWORK_BEST(all_rows<double>)(plan, wide.data(), found.data(), 1, false, 1.0 / double(size));
        for (int64_t k = 0; k < 2 * size; k++) spectrum[k] = T(found[k]);
    }
};

template <class T>
static std::shared_ptr<const Chirp<T>> chirp_of(int64_t n) {
    static std::mutex mutex;
    static std::list<std::shared_ptr<const Chirp<T>>> kept;
    std::lock_guard<std::mutex> lock(mutex);
    for (auto &entry : kept)
        if (entry->n == n) return entry;
    auto chirp = std::make_shared<const Chirp<T>>(n);
    if (kept.size() >= 8 || chirp->size > (1 << 20)) kept.clear();
    kept.push_front(chirp);
    return chirp;
}

template <class T>
CLONES void multiply_pairs(const T *a, const T *b, T *to, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        T re = a[2 * k] * b[2 * k] - a[2 * k + 1] * b[2 * k + 1];
        T im = a[2 * k] * b[2 * k + 1] + a[2 * k + 1] * b[2 * k];
        to[2 * k] = re, to[2 * k + 1] = im;
    }
}

constexpr int64_t BAND = 16;  // rows that are transformed together

// Rows of n complex numbers, forward, in place.
template <class T>
static void chirped_rows(const Chirp<T> &chirp, const Plan<T> &plan, T *x, int64_t rows) {
    int64_t n = chirp.n, size = chirp.size;
    parallel_for((rows + BAND - 1) / BAND, 4096 / size + 1, [&](int64_t from, int64_t to) {
        std::vector<T> a(2 * size * BAND), b(2 * size * BAND);
        for (int64_t band = from; band < to; band++) {
            T *at = x + 2 * n * BAND * band;
            int64_t count = std::min(BAND, rows - BAND * band);
            for (int64_t r = 0; r < count; r++) {
                T *row = a.data() + 2 * size * r;
                multiply_pairs(at + 2 * n * r, chirp.factors.data(), row, n);
                std::fill(row + 2 * n, row + 2 * size, T(0));
            }
            NETWORK_BEST(all_rows<T>)(plan, a.data(), b.data(), count, false, T(1));
            for (int64_t r = 0; r < count; r++)
                multiply_pairs(b.data() + 2 * size * r, chirp.spectrum.data(), b.data() + 2 * size * r, size);
            NETWORK_BEST(all_rows<T>)(plan, b.data(), a.data(), count, true, T(1));
            for (int64_t r = 0; r < count; r++)
                multiply_pairs(a.data() + 2 * size * r, chirp.factors.data(), at + 2 * n * r, n);
        }
    }, 1);
}

template <class T>
static void rows_in_place(int64_t n, T *x, int64_t rows) {
    if (Plan<T>::fits(n)) {
        std::vector<T> copy(x, x + 2 * n * rows);
        NETWORK_BEST(all_rows<T>)(*plan_of<T>(n, true), copy.data(), x, rows, false, T(1));
        return;
    }
    auto chirp = chirp_of<T>(n);
    chirped_rows(*chirp, *plan_of<T>(chirp->size, true), x, rows);
}

// Calls load(row, to) and store(row, from) for complex rows of length n, which are transformed between.
template <class T, class Load, class Store>
static void banded(int64_t n, int64_t rows, Load load, Store store) {
    parallel_for((rows + BAND - 1) / BAND, 1024 / n + 1, [&](int64_t from, int64_t to) {
        std::vector<T> x(2 * n * BAND);
        for (int64_t band = from; band < to; band++) {
            int64_t first = BAND * band, count = std::min(BAND, rows - first);
            for (int64_t r = 0; r < count; r++) load(first + r, x.data() + 2 * n * r);
            rows_in_place(n, x.data(), count);
            for (int64_t r = 0; r < count; r++) store(first + r, x.data() + 2 * n * r);
        }
    }, 1);
}

// The dimension `n` of (outer, n, inner). The inverse transform is the forward one of numbers whose
// parts are exchanged.
template <class T>
static void any_length(const T *x, T *result, int64_t n, int64_t outer, int64_t inner, bool exchange, T factor) {
    auto place = [=](int64_t row) { return 2 * (row / inner * n * inner + row % inner); };
    banded<T>(n, outer * inner, [=](int64_t row, T *to) {
        const T *from = x + place(row);
        for (int64_t k = 0; k < n; k++, from += 2 * inner) to[2 * k] = from[exchange], to[2 * k + 1] = from[!exchange];
    }, [=](int64_t row, const T *from) {
        T *to = result + place(row);
        for (int64_t k = 0; k < n; k++, to += 2 * inner)
            to[exchange] = from[2 * k] * factor, to[!exchange] = from[2 * k + 1] * factor;
    });
}

// Rows of n real numbers, two in one of complex ones.
template <class T>
static void real_pairs(const T *x, T *result, int64_t n, int64_t rows, T factor) {
    int64_t kept = n / 2 + 1;
    banded<T>(n, (rows + 1) / 2, [=](int64_t pair, T *to) {
        const T *a = x + 2 * pair * n, *b = 2 * pair + 1 < rows ? a + n : a;
        for (int64_t k = 0; k < n; k++) to[2 * k] = a[k], to[2 * k + 1] = b[k];
    }, [=](int64_t pair, const T *z) {
        T *a = result + 4 * pair * kept, *b = 2 * pair + 1 < rows ? a + 2 * kept : nullptr;
        T half = factor / 2;
        for (int64_t k = 0; k < kept; k++) {
            int64_t mirror = k ? n - k : 0;
            T re = z[2 * k], im = z[2 * k + 1], other_re = z[2 * mirror], other_im = z[2 * mirror + 1];
            a[2 * k] = (re + other_re) * half, a[2 * k + 1] = (im - other_im) * half;
            if (b) b[2 * k] = (im + other_im) * half, b[2 * k + 1] = (other_re - re) * half;
        }
    });
}

// And back: rows of n/2 + 1 complex numbers, which stand for spectra of real ones.
template <class T>
static void real_pairs_of(const T *x, T *result, int64_t n, int64_t rows, T factor) {
    int64_t kept = n / 2 + 1;
    banded<T>(n, (rows + 1) / 2, [=](int64_t pair, T *to) {
        const T *a = x + 4 * pair * kept, *b = 2 * pair + 1 < rows ? a + 2 * kept : a;
        for (int64_t k = 0; k < n; k++) {  // a + i b with its parts exchanged
            bool second = k >= kept;
            int64_t at = second ? n - k : k;
            bool real = at == 0 || 2 * at == n;
            T sign = second ? T(-1) : T(1), a_im = real ? T(0) : sign * a[2 * at + 1], b_im = real ? T(0) : sign * b[2 * at + 1];
            to[2 * k] = a_im + b[2 * at], to[2 * k + 1] = a[2 * at] - b_im;
        }
    }, [=](int64_t pair, const T *z) {
        T *a = result + 2 * pair * n, *b = 2 * pair + 1 < rows ? a + n : nullptr;
        for (int64_t k = 0; k < n; k++) {
            a[k] = z[2 * k + 1] * factor;
            if (b) b[k] = z[2 * k] * factor;
        }
    });
}

template <class T>
struct ComplexNum;
template <>
struct ComplexNum<float> {
    static constexpr int value = NPY_CFLOAT;
};
template <>
struct ComplexNum<double> {
    static constexpr int value = NPY_CDOUBLE;
};

// (x, axis, forward, factor)
template <class T>
static PyObject *c2c_(PyObject *const *args) {
    Array x;
    Axis axis;
    double factor;
    if (type_of(args[0]) != ComplexNum<T>::value || !take_any(args[0], x) ||
        !axis.read(x, args[1]) || !PyBool_Check(args[2]) || !take_float(args[3], factor) || !axis.n)
        return declined();
    Array result = Array::empty(x.dims(), ComplexNum<T>::value);
    if (!result) return nullptr;
    if (!x.size()) return result.release();
    bool exchange = args[2] == Py_False;
    const T *from = x.data<T>();
    T *to = result.data<T>();
    Unlocked unlocked;
    if (!Plan<T>::fits(axis.n)) {
        any_length(from, to, axis.n, axis.outer, axis.inner, exchange, T(factor));
        return result.release();
    }
    auto plan = plan_of<T>(axis.n, axis.inner == 1);
    if (axis.inner == 1)
        NETWORK_BEST(all_rows<T>)(*plan, from, to, axis.outer, exchange, T(factor));
    else
        NETWORK_BEST(all_columns<T>)
            (*plan, from, to, axis.outer, axis.inner, exchange, T(factor));
    return result.release();
}

static PyObject *c2c(PyObject *const *args) {
    if (type_of(args[0]) == NPY_CFLOAT) return c2c_<float>(args);
    return c2c_<double>(args);
}

// (x, factor): the last dimension
template <class T>
static PyObject *r2c_(PyObject *const *args) {
    Array x;
    double factor;
    if (!take<T>(args[0], x) || !take_float(args[1], factor) || !x.ndim()) return declined();
    std::vector<npy_intp> shape = x.dims();
    npy_intp size = shape.back(), n = size / 2;
    if (!size) return declined();
    shape.back() = n + 1;
    Array result = Array::empty(shape, ComplexNum<T>::value);
    if (!result) return nullptr;
    Unlocked unlocked;
    if (size % 2 || !Plan<T>::fits(n))
        real_pairs(x.data<T>(), result.data<T>(), size, x.size() / size, T(factor));
    else if (x.size())
        NETWORK_BEST(real_rows<T>)
            (*plan_of<T>(n, true), x.data<T>(), result.data<T>(), x.size() / (2 * n), T(factor));
    return result.release();
}
NETWORK_FLOATS(r2c, 0)

// (x, size, factor): the last dimension
template <class T>
static PyObject *c2r_(PyObject *const *args) {
    Array x;
    npy_intp size;
    double factor;
    if (type_of(args[0]) != ComplexNum<T>::value || !take_any(args[0], x) ||
        !take_int(args[1], size) || !take_float(args[2], factor) || !x.ndim())
        return declined();
    std::vector<npy_intp> shape = x.dims();
    npy_intp n = size / 2;
    if (size < 1 || shape.back() != n + 1) return declined();
    shape.back() = size;
    Array result = Array::empty(shape, TypeNum<T>::value);
    if (!result) return nullptr;
    Unlocked unlocked;
    if (size % 2 || !Plan<T>::fits(n))
        real_pairs_of(x.data<T>(), result.data<T>(), size, x.size() / (n + 1), T(factor));
    else if (x.size())
        NETWORK_BEST(rows_to_real<T>)
            (*plan_of<T>(n, true), x.data<T>(), result.data<T>(), x.size() / (n + 1), T(factor));
    return result.release();
}

static PyObject *c2r(PyObject *const *args) {
    if (type_of(args[0]) == NPY_CFLOAT) return c2r_<float>(args);
    return c2r_<double>(args);
}

static PyMethodDef methods[] = {NETWORK_METHOD(c2c, 4), NETWORK_METHOD(r2c, 2),
                                NETWORK_METHOD(c2r, 3), {nullptr, nullptr, 0, nullptr}};

}  // namespace network

int register_network_fourier(PyObject *module) {
    return PyModule_AddFunctions(module, network::methods);
}

#else

int register_network_fourier(PyObject *) { return 0; }

#endif
