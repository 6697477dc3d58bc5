// Products of matrices and vectors, alone or added to something: small ones by loops, others by BLAS,
// large ones in panels, each by one thread of our pool. Types that these loops are not made for are
// declined, and where BLAS has threads that can't be told to rest large ones are too: the twins do them.
#include "kernels/linalg/matrices.h"
#include "kernels/linalg/small_products.h"
#include "kernels/network/module.h"
#include "parallel.h"

namespace linalg {

constexpr npy_intp LOOPS = 4096;        // so many multiplications are not worth a call of BLAS
constexpr npy_intp MOST = 1 << 18;      // up to here BLAS uses one thread by itself

// ---- arithmetic ---------------------------------------------------------------------------------

template <class T>
INLINE T times(T a, T b) {
    return a * b;
}
template <class T>
INLINE Complex<T> times(Complex<T> a, Complex<T> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T>
INLINE T plus(T a, T b) {
    return a + b;
}
template <class T>
INLINE Complex<T> plus(Complex<T> a, Complex<T> b) {
    return {a.re + b.re, a.im + b.im};
}
template <class T>
INLINE T minus(T a, T b) {
    return a - b;
}
template <class T>
INLINE Complex<T> minus(Complex<T> a, Complex<T> b) {
    return {a.re - b.re, a.im - b.im};
}
template <class T>
INLINE T conjugate(T a) {
    return a;
}
template <class T>
INLINE Complex<T> conjugate(Complex<T> a) {
    return {a.re, -a.im};
}

// beta or alpha as an element; false: it is of another kind, or no element holds it.
template <class T>
static bool read_number(PyObject *x, T &to) {
    using Limits = std::numeric_limits<T>;
    if (PyBool_Check(x)) return to = T(x == Py_True), true;
    if (!PyLong_CheckExact(x) && (Limits::is_integer || !PyFloat_CheckExact(x))) return false;
    if (Limits::is_integer) {
        int overflow = 0;
        const long long value = PyLong_AsLongLongAndOverflow(x, &overflow), most = (long long)Limits::max();
        if (overflow || value > most || value < (Limits::is_signed ? -most - 1 : -most)) return false;
        return to = T(value), true;
    }
    const double value = PyFloat_AsDouble(x);
    if (PyErr_Occurred()) return PyErr_Clear(), false;
    return to = T(value), !std::isfinite(value) || std::isfinite(to);
}
template <class T>
static bool read_number(PyObject *x, Complex<T> &to) {
    to.im = 0;
    return read_number(x, to.re);
}
template <class T>
static T one() {
    T x = T();
    return read_number(Py_True, x), x;
}
template <class T>
static bool is_number(T x, int n) {
    return x == T(n);
}
template <class T>
static bool is_number(Complex<T> x, int n) {
    return x.re == n && x.im == 0;
}

// ---- products -----------------------------------------------------------------------------------

template <class T>
static void multiply(Part<T> a, Part<T> b, T *to, npy_intp n, npy_intp k, npy_intp m) {
    for (npy_intp i = 0; i < n; i++, to += m) {
        const T *left = a.at + i * a.row;
        for (npy_intp j = 0; j < m; j++) to[j] = T();
        if (b.column == 1 || m == 1) {
            for (npy_intp l = 0; l < k; l++, left += a.column) {
                const T x = *left, *right = b.at + l * b.row;
                for (npy_intp j = 0; j < m; j++) to[j] = plus(to[j], times(x, right[j]));
            }
        } else {
            for (npy_intp j = 0; j < m; j++) {
                const T *right = b.at + j * b.column;
                T sum = T();
                for (npy_intp l = 0; l < k; l++) sum = plus(sum, times(left[l * a.column], right[l * b.row]));
                to[j] = sum;
            }
        }
    }
}

static Routine gemm{"gemm"};

// Do the elements lie as BLAS reads them, and by rows or by columns?
template <class T>
static bool lies(Part<T> a, npy_intp rows, npy_intp columns, bool &by_rows, int64_t &step) {
    by_rows = a.column == 1 && a.row >= columns;
    if (!by_rows && !(a.row == 1 && a.column >= rows)) return false;
    step = by_rows ? a.row : a.column;
    return step > 0;
}

template <class T, class I>
static void run_gemm(void *routine, Part<T> a, Part<T> b, T *to, npy_intp n, npy_intp k, npy_intp m,
                     npy_intp step, const char *a_way, const char *b_way, int64_t a_step, int64_t b_step) {
    auto run = (void (*)(const char *, const char *, I *, I *, I *, T *, const T *, I *, const T *, I *, T *,
                         T *, I *, size_t, size_t))routine;
    I rows = I(n), inside = I(k), columns = I(m), first = I(a_step), second = I(b_step), third = I(step);
    T one = 1, zero = 0;  // by columns, the product is bᵀ aᵀ
    run(b_way, a_way, &columns, &rows, &inside, &one, b.at, &second, a.at, &first, &zero, to, &third, 1, 1);
}

// While it lives, NumPy's BLAS uses no threads of its own; made and dropped by whoever has the GIL.
class BlasRests {
    PyObject *guard = nullptr;
    bool entered = false;

 public:
    BlasRests() {
        static PyObject *find;
        if (!find) {
            PyObject *module = PyImport_ImportModule("flambeau.kernels.linalg.blas");
            find = module ? PyObject_GetAttrString(module, "one_thread") : nullptr;
            Py_XDECREF(module);
        }
        guard = find ? PyObject_CallNoArgs(find) : nullptr;
        PyObject *done = guard && guard != Py_None ? PyObject_CallMethod(guard, "__enter__", nullptr) : nullptr;
        entered = done != nullptr;
        Py_XDECREF(done);
        PyErr_Clear();
    }
    BlasRests(const BlasRests &) = delete;
    ~BlasRests() {
        if (entered) Py_XDECREF(PyObject_CallMethod(guard, "__exit__", "OOO", Py_None, Py_None, Py_None));
        Py_XDECREF(guard);
    }
    explicit operator bool() const { return entered; }
};

template <class T>
static bool by_blas(Part<T>, Part<T>, T *, npy_intp, npy_intp, npy_intp) {
    return false;
}
template <class T>
static bool real_by_blas(Part<T> a, Part<T> b, T *to, npy_intp n, npy_intp k, npy_intp m, int type) {
    bool a_rows, b_rows;
    int64_t a_step, b_step;
    if (!lies(a, n, k, a_rows, a_step) || !lies(b, k, m, b_rows, b_step)) return false;
    void *routine = gemm.find(type);
    if (!routine) return false;
    const char *first = a_rows ? "N" : "T", *second = b_rows ? "N" : "T";
    auto panel = [&](npy_intp top, npy_intp bottom, npy_intp left, npy_intp right) {
        Part<T> x{a.at + top * a.row, a.row, a.column}, y{b.at + left * b.column, b.row, b.column};
        T *at = to + top * m + left;
        npy_intp rows = bottom - top, columns = right - left;
        if (wide_integers)
            run_gemm<T, int64_t>(routine, x, y, at, rows, k, columns, m, first, second, a_step, b_step);
        else run_gemm<T, int32_t>(routine, x, y, at, rows, k, columns, m, first, second, a_step, b_step);
    };
    if (n * k * m <= MOST) return panel(0, n, 0, m), true;
    BlasRests rests;
    if (!rests) return false;
    bool by_rows = n >= m;
    npy_intp length = by_rows ? n : m, each = (length + max_threads() - 1) / max_threads();
    npy_intp least = MOST / (k * (by_rows ? m : n)) + 1;
    Py_BEGIN_ALLOW_THREADS;
    parallel_for(length, std::max(each, least), [&](int64_t begin, int64_t end) {
        by_rows ? panel(begin, end, 0, m) : panel(0, n, begin, end);
    });
    Py_END_ALLOW_THREADS;
    return true;
}
template <>
bool by_blas(Part<float> a, Part<float> b, float *to, npy_intp n, npy_intp k, npy_intp m) {
    return real_by_blas(a, b, to, n, k, m, NPY_FLOAT);
}
template <>
bool by_blas(Part<double> a, Part<double> b, double *to, npy_intp n, npy_intp k, npy_intp m) {
    return real_by_blas(a, b, to, n, k, m, NPY_DOUBLE);
}

constexpr npy_intp TINY = 128;          // so many multiplications are not worth a vector
constexpr npy_intp OWN = 1 << 15;       // so many are done faster by our own loops than by BLAS
constexpr npy_intp PACKED = 1 << 18;    // so many, by those that copy their factors first

template <class T>
static bool by_own_loops(Part<T> a, Part<T> b, T *to, npy_intp n, npy_intp k, npy_intp m) {
#if NETWORK_VECTORS
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
        npy_intp work = n * k * m;
        if (work < TINY) return false;
        bool sums = a.column == 1 && b.row == 1 && (m == 1 || n == 1);
        if (sums && work > LOOPS && (m == 1 ? n : m) > 1) {
            npy_intp rows = m == 1 ? n : m, grain = PARALLEL_FROM / k + 1;
            const T *matrix = m == 1 ? a.at : b.at, *vector = m == 1 ? b.at : a.at;
            npy_intp step = m == 1 ? a.row : b.column;
            parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
                matrix_vector(matrix + begin * step, step, vector, end - begin, k, to + begin);
            });
            return true;
        }
        if (sums && m == 1) return matrix_vector(a.at, a.row, b.at, n, k, to), true;
        if (sums) return matrix_vector(b.at, b.column, a.at, m, k, to), true;
        if (b.column == 1 && k <= SMALL_DEPTH && work <= OWN && m >= 4)
            return small_product(a, b, to, n, k, m), true;
        if constexpr (std::is_same_v<T, float>)
            if (k <= PACKED_DEPTH && work > LOOPS && work <= PACKED && n >= 8 && m >= 16)
                return packed_product(a, b, to, n, k, m), true;
    }
#endif
    return false;
}

template <class T>
static bool product(Part<T> a, Part<T> b, T *to, npy_intp n, npy_intp k, npy_intp m) {
    if (by_own_loops(a, b, to, n, k, m)) return true;
    if (n * k * m > LOOPS) return by_blas(a, b, to, n, k, m);
    multiply(a, b, to, n, k, m);
    return true;
}

// ---- operands -----------------------------------------------------------------------------------

struct Operand {
    PyArrayObject *array;
    int nd;
    npy_intp *dims;
    npy_intp step[3];  // strides in elements

    bool read(PyObject *object, int wanted, int type = -1) {
        array = (PyArrayObject *)object;
        if (!is_plain(object) || PyArray_NDIM(array) != wanted || (type >= 0 && PyArray_TYPE(array) != type))
            return false;
        nd = wanted, dims = PyArray_DIMS(array);
        return read_steps();
    }
    bool read_steps() {
        npy_intp size = PyArray_ITEMSIZE(array);
        for (int d = 0; d < nd; d++) {
            if (PyArray_STRIDE(array, d) % size) return false;
            step[d] = PyArray_STRIDE(array, d) / size;
        }
        return true;
    }
    // Of an array that expands to these dimensions.
    bool read_expanded(PyObject *object, int count, const npy_intp *shape, int type) {
        array = (PyArrayObject *)object;
        if (!is_plain(object) || PyArray_TYPE(array) != type || PyArray_NDIM(array) > count) return false;
        npy_intp size = PyArray_ITEMSIZE(array);
        int extra = count - PyArray_NDIM(array);
        nd = count;
        for (int d = 0; d < count; d++) {
            npy_intp n = d < extra ? 1 : PyArray_DIM(array, d - extra);
            npy_intp stride = d < extra ? 0 : PyArray_STRIDE(array, d - extra);
            if ((n != shape[d] && n != 1) || stride % size) return false;
            step[d] = n == shape[d] ? stride / size : 0;
        }
        return true;
    }
    template <class T>
    const T *at() const {
        return (const T *)PyArray_DATA(array);
    }
    template <class T>
    Part<T> matrix(npy_intp item = 0) const {
        return {at<T>() + (nd == 3 ? item * step[0] : 0), step[nd - 2], step[nd - 1]};
    }
};

// Calls `body<T>(…)` for the type, unsigned so that overflow wraps; declines types without loops.
#define BY_TYPE(type, body, ...)                                    \
    switch (dtype_of(type)) {                                       \
        case F4: return body<float>(__VA_ARGS__);                   \
        case F8: return body<double>(__VA_ARGS__);                  \
        case C8: return body<Complex64>(__VA_ARGS__);               \
        case C16: return body<Complex128>(__VA_ARGS__);             \
        case I8: return body<uint64_t>(__VA_ARGS__);                \
        case I4: return body<uint32_t>(__VA_ARGS__);                \
        case I2: return body<int16_t>(__VA_ARGS__);                 \
        case I1: return body<int8_t>(__VA_ARGS__);                  \
        case U1: return body<uint8_t>(__VA_ARGS__);                 \
        default: return declined();                                 \
    }

static PyArrayObject *empty(int nd, const npy_intp *dims, int type) {
    return (PyArrayObject *)PyArray_SimpleNew(nd, const_cast<npy_intp *>(dims), type);
}

static PyObject *given(PyArrayObject *r, bool good) {
    if (r && good) return (PyObject *)r;
    Py_XDECREF(r);
    return r ? declined() : nullptr;
}

// Makes of what is in `to`, of three dimensions, beta · self + alpha · that.
template <class T>
static void weigh(const Operand &self, T beta, T alpha, T *to, const npy_intp *shape) {
    npy_intp count = shape[0] * shape[1] * shape[2];
    if (!is_number(alpha, 1))
        for (npy_intp i = 0; i < count; i++) to[i] = times(to[i], alpha);
    if (is_number(beta, 0)) return;
    bool once = is_number(beta, 1);
    npy_intp wide = shape[2], step = self.step[2];
    auto add_rows = [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; row++) {
            const T *from = self.at<T>() + row / shape[1] * self.step[0] + row % shape[1] * self.step[1];
            T *at = to + row * wide;
            if (once && step == 1) {
                INDEPENDENT
                for (npy_intp l = 0; l < wide; l++) at[l] = plus(from[l], at[l]);
            } else {
                for (npy_intp l = 0; l < wide; l++)
                    at[l] = plus(once ? from[l * step] : times(from[l * step], beta), at[l]);
            }
        }
    };
    parallel_for(shape[0] * shape[1], PARALLEL_FROM / (wide + 1) + 1, add_rows, 1);
}

// ---- of two -------------------------------------------------------------------------------------

template <class T>
static PyObject *mm_of(const Operand &a, const Operand &b) {
    npy_intp shape[] = {a.dims[0], b.dims[1]}, k = a.dims[1];
    PyArrayObject *r = empty(2, shape, PyArray_TYPE(a.array));
    return given(r, r && product(a.matrix<T>(), b.matrix<T>(), (T *)PyArray_DATA(r), shape[0], k, shape[1]));
}

// mm(self, mat2)
static PyObject *mm(Args args, Py_ssize_t n, PyObject *) {
    Operand a, b;
    if (n < 2 || !a.read(args[0], 2) || !b.read(args[1], 2, PyArray_TYPE(a.array)) || a.dims[1] != b.dims[0])
        return declined();
    BY_TYPE(PyArray_TYPE(a.array), mm_of, a, b)
}

// Many products by BLAS: large ones one after the other, others shared among threads.
template <class T>
static bool multiply_many(const Operand &a, const Operand &b, T *to) {
    npy_intp n = a.dims[1], k = a.dims[2], m = b.dims[2], each = n * k * m;
    bool real = std::is_same_v<T, float> || std::is_same_v<T, double>, by_rows;
    int64_t step;
    for (npy_intp i = 0; real && each > MOST; i++) {
        if (i == a.dims[0]) return true;
        if (!product(a.matrix<T>(i), b.matrix<T>(i), to + i * n * m, n, k, m)) return false;
    }
    if (!real || !gemm.find(std::is_same_v<T, float> ? NPY_FLOAT : NPY_DOUBLE) ||
        !lies(a.matrix<T>(), n, k, by_rows, step) || !lies(b.matrix<T>(), k, m, by_rows, step))
        return false;
    Py_BEGIN_ALLOW_THREADS;
    parallel_for(
        a.dims[0], MOST / 2 / each + 1,
        [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) product(a.matrix<T>(i), b.matrix<T>(i), to + i * n * m, n, k, m);
        },
        1);
    Py_END_ALLOW_THREADS;
    return true;
}

template <class T>
static bool multiply_all(const Operand &a, const Operand &b, T *to, bool sums) {
    npy_intp n = a.dims[1], k = a.dims[2], m = b.dims[2];
    if (a.dims[0] * n * k * m > MOST) return !sums && multiply_many(a, b, to);
    std::vector<T> part(sums ? n * m : 0);
    if (sums) std::fill(to, to + n * m, T());
    for (npy_intp i = 0; i < a.dims[0]; i++) {
        if (!product(a.matrix<T>(i), b.matrix<T>(i), sums ? part.data() : to, n, k, m)) return false;
        for (npy_intp j = 0; sums && j < n * m; j++) to[j] = plus(to[j], part[j]);
        if (!sums) to += n * m;
    }
    return true;
}

static bool read_batches(Args args, Operand &a, Operand &b) {
    return a.read(args[0], 3) && b.read(args[1], 3, PyArray_TYPE(a.array)) && a.dims[0] == b.dims[0] &&
           a.dims[2] == b.dims[1];
}

template <class T>
static PyObject *bmm_of(const Operand &a, const Operand &b) {
    npy_intp shape[] = {a.dims[0], a.dims[1], b.dims[2]};
    PyArrayObject *r = empty(3, shape, PyArray_TYPE(a.array));
    return given(r, r && multiply_all<T>(a, b, (T *)PyArray_DATA(r), false));
}

// bmm(self, mat2)
static PyObject *bmm(Args args, Py_ssize_t n, PyObject *) {
    Operand a, b;
    if (n < 2 || !read_batches(args, a, b)) return declined();
    BY_TYPE(PyArray_TYPE(a.array), bmm_of, a, b)
}

template <class T>
static T sum_of(const T *a, npy_intp a_step, const T *b, npy_intp b_step, npy_intp n, bool conjugated) {
    // one wide sum: of four narrow ones GCC 12 loses terms, where it makes them vectors
    if constexpr (std::is_integral_v<T> && sizeof(T) < sizeof(int32_t)) {
        uint32_t sum = 0;
        for (npy_intp i = 0; i < n; i++) sum += uint32_t(int32_t(a[i * a_step]) * int32_t(b[i * b_step]));
        return T(sum);
    }
    T parts[4] = {};
    npy_intp i = 0;
    for (; !conjugated && i + 4 <= n; i += 4)
        for (int j = 0; j < 4; j++) parts[j] = plus(parts[j], times(a[(i + j) * a_step], b[(i + j) * b_step]));
    for (; i < n; i++) {
        T x = a[i * a_step];
        parts[0] = plus(parts[0], times(conjugated ? conjugate(x) : x, b[i * b_step]));
    }
    return plus(plus(parts[0], parts[1]), plus(parts[2], parts[3]));
}

template <class T>
static PyObject *mv_of(const Operand &a, const Operand &v) {
    PyArrayObject *r = empty(1, a.dims, PyArray_TYPE(a.array));
    T *to = r ? (T *)PyArray_DATA(r) : nullptr;
    for (npy_intp i = 0; r && i < a.dims[0]; i++)
        to[i] = sum_of(a.at<T>() + i * a.step[0], a.step[1], v.at<T>(), v.step[0], a.dims[1], false);
    return (PyObject *)r;
}

static Routine gemv{"gemv"};

template <class T, class I>
static void run_gemv(void *routine, bool by_rows, int64_t step, const T *a, npy_intp n, npy_intp k, const T *v,
                     npy_intp v_step, T *to) {
    auto run = (void (*)(const char *, I *, I *, T *, const T *, I *, const T *, I *, T *, T *, I *, size_t))routine;
    I rows = I(by_rows ? k : n), columns = I(by_rows ? n : k), lead = I(step), every = I(v_step), unit = 1;
    T one = 1, zero = 0;
    run(by_rows ? "T" : "N", &rows, &columns, &one, a, &lead, v, &every, &zero, to, &unit, 1);
}

// The product of a large matrix and a vector, by BLAS in the threads of our pool.
template <class T>
static PyObject *large_mv(const Operand &a, const Operand &v) {
    npy_intp n = a.dims[0], k = a.dims[1];
    bool by_rows;
    int64_t step;
    void *routine = gemv.find(PyArray_TYPE(a.array));
    if (!routine || !lies(a.matrix<T>(), n, k, by_rows, step) || v.step[0] <= 0) return declined();
    BlasRests rests;
    PyArrayObject *r = rests ? empty(1, a.dims, PyArray_TYPE(a.array)) : nullptr;
    if (!r) return rests ? nullptr : declined();
    T *to = (T *)PyArray_DATA(r);
    Py_BEGIN_ALLOW_THREADS;
    parallel_for(n, PARALLEL_FROM / k + 1, [&](int64_t begin, int64_t end) {
        const T *from = a.at<T>() + begin * a.step[0];
        if (wide_integers)
            run_gemv<T, int64_t>(routine, by_rows, step, from, end - begin, k, v.at<T>(), v.step[0], to + begin);
        else
            run_gemv<T, int32_t>(routine, by_rows, step, from, end - begin, k, v.at<T>(), v.step[0], to + begin);
    });
    Py_END_ALLOW_THREADS;
    return (PyObject *)r;
}

// mv(self, vec)
static PyObject *mv(Args args, Py_ssize_t n, PyObject *) {
    Operand a, v;
    if (n != 2 || !a.read(args[0], 2) || !v.read(args[1], 1, PyArray_TYPE(a.array)) || a.dims[1] != v.dims[0])
        return declined();
    if (a.dims[0] * a.dims[1] > LOOPS) {
        if (PyArray_TYPE(a.array) == NPY_FLOAT) return large_mv<float>(a, v);
        if (PyArray_TYPE(a.array) == NPY_DOUBLE) return large_mv<double>(a, v);
        return declined();
    }
    BY_TYPE(PyArray_TYPE(a.array), mv_of, a, v)
}

template <class T>
static PyObject *dot_of(const Operand &a, const Operand &b, bool conjugated) {
    PyArrayObject *r = empty(0, nullptr, PyArray_TYPE(a.array));
    if (r) *(T *)PyArray_DATA(r) = sum_of(a.at<T>(), a.step[0], b.at<T>(), b.step[0], a.dims[0], conjugated);
    return (PyObject *)r;
}

static PyObject *dot_or_vdot(Args args, Py_ssize_t n, bool conjugated) {
    Operand a, b;
    if (n != 2 || !a.read(args[0], 1) || !b.read(args[1], 1, PyArray_TYPE(a.array)) || a.dims[0] != b.dims[0] ||
        a.dims[0] > LOOPS)
        return declined();
    BY_TYPE(PyArray_TYPE(a.array), dot_of, a, b, conjugated)
}

// dot(self, tensor), vdot(self, other)
static PyObject *dot(Args args, Py_ssize_t n, PyObject *) { return dot_or_vdot(args, n, false); }
static PyObject *vdot(Args args, Py_ssize_t n, PyObject *) { return dot_or_vdot(args, n, true); }

// ---- added to something -------------------------------------------------------------------------

// The factors of an op, which the type and the shapes have been read of, and the result's dimensions.
struct Added {
    Operand a, b, self;
    npy_intp shape[3] = {1, 1, 1};
    int nd = 2;
    PyObject *beta, *alpha;
    bool read_self(Args args) {
        beta = args[3], alpha = args[4];
        return self.read_expanded(args[0], 3, shape, PyArray_TYPE(a.array)) &&
               PyArray_NDIM(self.array) <= nd;
    }
};

template <class T, class Multiply>
static PyObject *add_to(const Added &o, Multiply multiply_into) {
    T beta, alpha;
    if (!read_number(o.beta, beta) || !read_number(o.alpha, alpha)) return declined();
    PyArrayObject *r = empty(o.nd, o.shape + 3 - o.nd, PyArray_TYPE(o.a.array));
    T *to = r ? (T *)PyArray_DATA(r) : nullptr;
    bool good = r && multiply_into(to, alpha);
    if (good) weigh(o.self, beta, alpha, to, o.shape);
    return given(r, good);
}

template <class T>
static PyObject *addmm_of(const Added &o) {
    return add_to<T>(o, [&](T *to, T &) {
        return product(o.a.matrix<T>(), o.b.matrix<T>(), to, o.shape[1], o.a.dims[1], o.shape[2]);
    });
}

// addmm(self, mat1, mat2, beta, alpha)
static PyObject *addmm(Args args, Py_ssize_t n, PyObject *) {
    Added o;
    if (n < 5 || !o.a.read(args[1], 2) || !o.b.read(args[2], 2, PyArray_TYPE(o.a.array)) ||
        o.a.dims[1] != o.b.dims[0])
        return declined();
    o.shape[1] = o.a.dims[0], o.shape[2] = o.b.dims[1];
    if (!o.read_self(args)) return declined();
    BY_TYPE(PyArray_TYPE(o.a.array), addmm_of, o)
}

template <class T>
static PyObject *addmv_of(const Added &o) {
    return add_to<T>(o, [&](T *to, T &) {
        for (npy_intp i = 0; i < o.shape[2]; i++)
            to[i] = sum_of(o.a.at<T>() + i * o.a.step[0], o.a.step[1], o.b.at<T>(), o.b.step[0], o.a.dims[1], false);
        return true;
    });
}

// addmv(self, mat, vec, beta, alpha)
static PyObject *addmv(Args args, Py_ssize_t n, PyObject *) {
    Added o;
    if (n != 5 || !o.a.read(args[1], 2) || !o.b.read(args[2], 1, PyArray_TYPE(o.a.array)) ||
        o.a.dims[1] != o.b.dims[0] || o.a.dims[0] * o.a.dims[1] > LOOPS)
        return declined();
    o.shape[2] = o.a.dims[0], o.nd = 1;
    if (!o.read_self(args)) return declined();
    BY_TYPE(PyArray_TYPE(o.a.array), addmv_of, o)
}

template <class T>
static PyObject *addr_of(const Added &o) {
    return add_to<T>(o, [&](T *to, T &alpha) {
        for (npy_intp i = 0; i < o.shape[1]; i++) {
            T x = times(o.a.at<T>()[i * o.a.step[0]], alpha);
            for (npy_intp j = 0; j < o.shape[2]; j++) *to++ = times(x, o.b.at<T>()[j * o.b.step[0]]);
        }
        alpha = one<T>();  // which has been counted
        return true;
    });
}

// addr(self, vec1, vec2, beta, alpha)
static PyObject *addr(Args args, Py_ssize_t n, PyObject *) {
    Added o;
    if (n != 5 || !o.a.read(args[1], 1) || !o.b.read(args[2], 1, PyArray_TYPE(o.a.array))) return declined();
    o.shape[1] = o.a.dims[0], o.shape[2] = o.b.dims[0];
    if (o.shape[1] * o.shape[2] > LOOPS || !o.read_self(args)) return declined();
    BY_TYPE(PyArray_TYPE(o.a.array), addr_of, o)
}

template <class T>
static PyObject *baddbmm_of(const Added &o) {
    return add_to<T>(o, [&](T *to, T &) { return multiply_all<T>(o.a, o.b, to, false); });
}

// What baddbmm and addbmm take; the result has as many dimensions.
static bool read_added(Args args, Py_ssize_t n, Added &o, int nd) {
    if (n < 5 || !read_batches(args + 1, o.a, o.b)) return false;
    o.shape[0] = nd == 3 ? o.a.dims[0] : 1, o.shape[1] = o.a.dims[1], o.shape[2] = o.b.dims[2], o.nd = nd;
    return o.read_self(args);
}

// baddbmm(self, batch1, batch2, beta, alpha)
static PyObject *baddbmm(Args args, Py_ssize_t n, PyObject *) {
    Added o;
    if (!read_added(args, n, o, 3)) return declined();
    BY_TYPE(PyArray_TYPE(o.a.array), baddbmm_of, o)
}

template <class T>
static PyObject *addbmm_of(const Added &o) {
    return add_to<T>(o, [&](T *to, T &) { return multiply_all<T>(o.a, o.b, to, true); });
}

// addbmm(self, batch1, batch2, beta, alpha)
static PyObject *addbmm(Args args, Py_ssize_t n, PyObject *) {
    Added o;
    if (!read_added(args, n, o, 2)) return declined();
    BY_TYPE(PyArray_TYPE(o.a.array), addbmm_of, o)
}

// ---- cross products -----------------------------------------------------------------------------

struct Cross {
    PyArrayObject *a, *b;
    int nd, dim;
    npy_intp shape[NPY_MAXDIMS], left[NPY_MAXDIMS], right[NPY_MAXDIMS];  // strides in bytes
};

template <class T>
static PyObject *cross_of(const Cross &c) {
    PyArrayObject *r = empty(c.nd, c.shape, PyArray_TYPE(c.a));
    if (!r || !PyArray_SIZE(r)) return (PyObject *)r;
    npy_intp at[NPY_MAXDIMS] = {0}, to_step = PyArray_STRIDE(r, c.dim);
    npy_intp a_step = c.left[c.dim], b_step = c.right[c.dim];
    const char *a = PyArray_BYTES(c.a), *b = PyArray_BYTES(c.b);
    char *to = PyArray_BYTES(r);
    for (npy_intp count = PyArray_SIZE(r) / 3; count; count--) {
        auto x = [&](int i) { return *(const T *)(a + i * a_step); };
        auto y = [&](int i) { return *(const T *)(b + i * b_step); };
        for (int i = 0, j = 1, k = 2; i < 3; i++, j = (j + 1) % 3, k = (k + 1) % 3)
            *(T *)(to + i * to_step) = minus(times(x(j), y(k)), times(x(k), y(j)));
        for (int d = c.nd - 1; d >= 0; d--) {
            if (d == c.dim) continue;
            a += c.left[d], b += c.right[d], to += PyArray_STRIDE(r, d);
            if (++at[d] < c.shape[d]) break;
            a -= at[d] * c.left[d], b -= at[d] * c.right[d], to -= at[d] * PyArray_STRIDE(r, d);
            at[d] = 0;
        }
    }
    return (PyObject *)r;
}

// cross(self, other, dim): dimensions of extent 1 expand
static PyObject *cross(Args args, Py_ssize_t n, PyObject *) {
    if (n != 3 || !is_plain(args[0]) || !is_plain(args[1]) || !PyLong_CheckExact(args[2])) return declined();
    Cross c{(PyArrayObject *)args[0], (PyArrayObject *)args[1], 0, int(PyLong_AsLong(args[2])), {}, {}, {}};
    c.nd = PyArray_NDIM(c.a);
    if (PyArray_TYPE(c.a) != PyArray_TYPE(c.b) || PyArray_NDIM(c.b) != c.nd || c.dim < 0 || c.dim >= c.nd ||
        PyArray_DIM(c.a, c.dim) != 3 || PyArray_DIM(c.b, c.dim) != 3)
        return declined();
    for (int d = 0; d < c.nd; d++) {
        npy_intp m = PyArray_DIM(c.a, d), k = PyArray_DIM(c.b, d);
        if (m != k && m != 1 && k != 1) return declined();
        c.shape[d] = m == 1 ? k : m;
        c.left[d] = m == c.shape[d] ? PyArray_STRIDE(c.a, d) : 0;
        c.right[d] = k == c.shape[d] ? PyArray_STRIDE(c.b, d) : 0;
    }
    BY_TYPE(PyArray_TYPE(c.a), cross_of, c)
}

// ---- the affine map -----------------------------------------------------------------------------

template <class T>
static PyObject *affine_of(const Operand &x, const Operand &w, PyObject *bias, npy_intp rows) {
    npy_intp shape[NPY_MAXDIMS], k = w.dims[1], m = w.dims[0];
    int nd = PyArray_NDIM(x.array);
    std::copy(PyArray_DIMS(x.array), PyArray_DIMS(x.array) + nd, shape);
    shape[nd - 1] = m;
    Operand b;
    npy_intp whole[] = {1, rows, m};
    if (bias != Py_None && (!b.read(bias, 1, PyArray_TYPE(x.array)) || b.dims[0] != m ||
                            !b.read_expanded(bias, 3, whole, PyArray_TYPE(x.array))))
        return declined();
    PyArrayObject *r = empty(nd, shape, PyArray_TYPE(x.array));
    T *to = r ? (T *)PyArray_DATA(r) : nullptr;
    Part<T> turned{w.at<T>(), w.step[1], w.step[0]};
    bool good = r && product(x.matrix<T>(), turned, to, rows, k, m);
    if (good && bias != Py_None) weigh(b, T(1), T(1), to, whole);
    return given(r, good);
}

// affine(input, weight, bias): the rows of `input`, which has any dimensions, times weightᵀ, plus bias
static PyObject *affine(Args args, Py_ssize_t n, PyObject *) {
    Operand x, w;
    if (n != 3 || !is_plain(args[0]) || !w.read(args[1], 2, PyArray_TYPE((PyArrayObject *)args[0])))
        return declined();
    PyArrayObject *input = (PyArrayObject *)args[0];
    int nd = PyArray_NDIM(input);
    if (!nd || PyArray_DIM(input, nd - 1) != w.dims[1] || (nd != 2 && !PyArray_IS_C_CONTIGUOUS(input)))
        return declined();
    npy_intp rows = 1;
    for (int d = 0; d < nd - 1; d++) rows *= PyArray_DIM(input, d);
    x.array = input, x.nd = 2;
    npy_intp size = PyArray_ITEMSIZE(input);
    x.step[0] = nd == 2 ? PyArray_STRIDE(input, 0) / size : w.dims[1];
    x.step[1] = nd == 2 ? PyArray_STRIDE(input, 1) / size : 1;
    if (nd == 2 && (PyArray_STRIDE(input, 0) % size || PyArray_STRIDE(input, 1) % size)) return declined();
    switch (dtype_of(PyArray_TYPE(input))) {
        case F4: return affine_of<float>(x, w, args[2], rows);
        case F8: return affine_of<double>(x, w, args[2], rows);
        default: return declined();
    }
}

}  // namespace linalg

int register_products(PyObject *module) {
    using namespace linalg;
    return make_functions(module, {{"mm", mm}, {"bmm", bmm}, {"mv", mv}, {"dot", dot}, {"vdot", vdot},
                                   {"addmm", addmm}, {"addmv", addmv}, {"addr", addr}, {"baddbmm", baddbmm},
                                   {"addbmm", addbmm}, {"cross", cross}, {"affine", affine}});
}
