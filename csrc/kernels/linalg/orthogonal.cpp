// Orthogonal factors, singular values and eigenvalues of small real matrices, as equations.cpp does
// the rest. Twins: kernels/linalg/lapack.py.
#include "kernels/linalg/matrices.h"
#include "kernels/linalg/tiny.h"

namespace linalg {

// ---- reflections, and QR ------------------------------------------------------------------------

static Routine geqrf_{"geqrf"}, orgqr{"orgqr"}, ormqr_{"ormqr"};

// LAPACK reflects by the sign of an element, and would tell the two zeros apart.
template <class T>
static void without_negative_zeros(T *a, npy_intp count) {
    for (npy_intp i = 0; i < count; i++) a[i] += T(0);
}

template <class T, class I>
static void reflect_each(void *routine, const Matrices &m, PyArrayObject *work, PyArrayObject *factors) {
    auto run = (void (*)(I *, I *, T *, I *, T *, T *, I *, I *))routine;
    I rows = I(m.rows), columns = I(m.columns), k = std::min(rows, columns), error, length = 64 * columns;
    std::vector<T> space(length);
    T *a = (T *)PyArray_DATA(work), *tau = (T *)PyArray_DATA(factors);
    for (npy_intp item = 0; item < m.items; item++, a += rows * columns, tau += k) {
        without_negative_zeros(a, rows * columns);
        run(&rows, &columns, a, &rows, tau, space.data(), &length, &error);
    }
}

// geqrf(a): R and the vectors of the reflections below it, and their factors
static PyObject *geqrf(Args a, Py_ssize_t n, PyObject *) {
    Matrices m;
    if (n != 1 || !read(a[0], m)) return declined();
    void *routine = geqrf_.find(m.type());
    if (!routine) return declined();
    PyArrayObject *work = copied(m), *tau = one_each(m, std::min(m.rows, m.columns), m.type());
    OneThread one(m);
    if (work && tau && !m.empty()) DISPATCH(m.type(), reflect_each, routine, m, work, tau);
    return results({work, tau});
}

template <class T, class I>
static void form_each(void *routine, npy_intp items, npy_intp rows, npy_intp columns, PyArrayObject *q,
                      const void *factors, npy_intp count) {
    auto run = (void (*)(I *, I *, I *, T *, I *, T *, T *, I *, I *))routine;
    I m = I(rows), n = I(columns), k = I(count), error, length = 64 * n;
    std::vector<T> space(length), own(k);
    T *a = (T *)PyArray_DATA(q);
    const T *tau = (const T *)factors;
    for (npy_intp item = 0; item < items; item++, a += m * n, tau += k) {
        std::copy(tau, tau + k, own.data());
        run(&m, &n, &k, a, &m, own.data(), space.data(), &length, &error);
    }
}

// The factors of reflections of `m`, one after another; null: not of this kind.
static const void *read_factors(PyObject *object, const Matrices &m, npy_intp *k) {
    PyArrayObject *tau = (PyArrayObject *)object;
    if (!PyArray_CheckExact(object) || PyArray_TYPE(tau) != m.type() || !PyArray_IS_C_CONTIGUOUS(tau) ||
        PyArray_NDIM(tau) != m.lead + 1 || !std::equal(m.dims, m.dims + m.lead, PyArray_DIMS(tau)))
        return nullptr;
    *k = PyArray_DIM(tau, m.lead);
    return PyArray_DATA(tau);
}

// householder_product(a, tau)
static PyObject *householder_product(Args a, Py_ssize_t n, PyObject *) {
    Matrices m;
    npy_intp k = 0;
    if (n != 2 || !read(a[0], m) || m.rows < m.columns) return declined();
    const void *tau = read_factors(a[1], m, &k);
    void *routine = tau && k <= m.columns ? orgqr.find(m.type()) : nullptr;
    if (!routine) return declined();
    PyArrayObject *q = copied(m);
    OneThread one(m);
    if (q && !m.empty()) DISPATCH(m.type(), form_each, routine, m.items, m.rows, m.columns, q, tau, k);
    return (PyObject *)q;
}

template <class T, class I>
static void apply_each(void *routine, const Matrices &m, PyArrayObject *vectors, const void *factors,
                       npy_intp count, const Matrices &c, PyArrayObject *x, bool left, bool turned) {
    auto run = (void (*)(const char *, const char *, I *, I *, I *, T *, I *, T *, T *, I *, T *, I *, I *,
                         size_t, size_t))routine;
    I rows = I(c.rows), columns = I(c.columns), k = I(count), order = I(m.rows), error;
    I length = (left ? columns : rows) * 64 + 65 * 64;
    std::vector<T> space(length), own(k);
    T *a = (T *)PyArray_DATA(vectors), *b = (T *)PyArray_DATA(x);
    const T *tau = (const T *)factors;
    for (npy_intp item = 0; item < m.items; item++, a += m.rows * m.columns, b += rows * columns, tau += k) {
        std::copy(tau, tau + k, own.data());
        run(left ? "L" : "R", turned ? "T" : "N", &rows, &columns, &k, a, &order, own.data(), b, &rows,
            space.data(), &length, &error, 1, 1);
    }
}

// ormqr(a, tau, c, left, transpose)
static PyObject *ormqr(Args a, Py_ssize_t n, PyObject *) {
    Matrices m, c;
    npy_intp k = 0;
    if (n != 5 || !read(a[0], m) || !read(a[2], c, m.type()) || !same_lead(m, c)) return declined();
    const void *tau = read_factors(a[1], m, &k);
    bool left = is_true(a[3]);
    if (!tau || k > m.columns || k > m.rows || (left ? c.rows : c.columns) != m.rows) return declined();
    if (k != std::min(left ? c.rows : c.columns, m.columns)) return declined();
    void *routine = ormqr_.find(m.type());
    if (!routine) return declined();
    PyArrayObject *vectors = copied(m), *x = copied(c);
    OneThread one(m);
    if (vectors && x && !c.empty() && k)
        DISPATCH(m.type(), apply_each, routine, m, vectors, tau, k, c, x, left, is_true(a[4]));
    Py_XDECREF(vectors);
    return (PyObject *)x;
}

template <class T, class I>
static bool qr_each(void *geqrf, void *orgqr, const Matrices &m, PyArrayObject *work, PyArrayObject *q,
                    npy_intp wide, PyArrayObject *r, npy_intp from, npy_intp end) {
    auto factor = (void (*)(I *, I *, T *, I *, T *, T *, I *, I *))geqrf;
    auto form = (void (*)(I *, I *, I *, T *, I *, T *, T *, I *, I *))orgqr;
    I rows = I(m.rows), columns = I(m.columns), k = std::min(rows, columns), error, width = I(wide);
    I length = 64 * std::max(rows, columns);
    std::vector<T> space(length);
    npy_intp height = std::min(npy_intp(wide), m.rows);
    T tau[LONGEST_SIDE], *a = (T *)PyArray_DATA(work) + from * rows * columns;
    T *to = q ? (T *)PyArray_DATA(q) + from * rows * width : nullptr;
    T *upper = (T *)PyArray_DATA(r) + from * height * columns;
    bool few = tiny::reflects(rows, width) && tiny::reflects(rows, columns);
    for (npy_intp item = from; item < end; item++, a += rows * columns) {
        if (few) tiny::reflect(a, rows, columns, tau);
        else {
            without_negative_zeros(a, rows * columns);
            factor(&rows, &columns, a, &rows, tau, space.data(), &length, &error);
        }
        for (I j = 0; j < columns; j++)
            for (I i = 0; i < I(height); i++) *upper++ = i <= j ? a[j * rows + i] : T(0);
        if (!to) continue;
        std::copy(a, a + rows * std::min(width, columns), to);
        if (few) tiny::form(to, rows, width, k, tau);
        else form(&rows, &width, &k, to, &rows, tau, space.data(), &length, &error);
        to += rows * width;
    }
    return true;
}

// qr(a, mode): Q and R
static PyObject *qr(Args a, Py_ssize_t n, PyObject *) {
    Matrices m;
    if (n != 2 || !read(a[0], m)) return declined();
    bool complete = !PyUnicode_CompareWithASCIIString(a[1], "complete");
    bool only_r = !PyUnicode_CompareWithASCIIString(a[1], "r");
    if (!complete && !only_r && PyUnicode_CompareWithASCIIString(a[1], "reduced")) return declined();
    npy_intp wide = complete ? m.rows : std::min(m.rows, m.columns), none = 0;
    void *first = geqrf_.find(m.type()), *second = orgqr.find(m.type());
    if (!first || !second || (complete && m.empty() && m.items)) return declined();
    PyArrayObject *work = copied(m), *r = by_columns(m, wide, m.columns);
    PyArrayObject *q = only_r ? (PyArrayObject *)PyArray_SimpleNew(1, &none, m.type()) : by_columns(m, m.rows, wide);
    if (work && q && r && !m.empty())
        DISPATCH_EACH(m, qr_each, first, second, m, work, only_r ? nullptr : q, wide, r);
    Py_XDECREF(work);
    return results({q, r});
}

// ---- singular values ----------------------------------------------------------------------------

static Routine gesdd{"gesdd"};

// Without `u` and `vh` the values alone.
template <class T, class I>
static bool svd_each(void *routine, const Matrices &m, PyArrayObject *work, PyArrayObject *u,
                     PyArrayObject *s, PyArrayObject *vh, bool full, npy_intp from, npy_intp to) {
    auto run = (void (*)(const char *, I *, I *, T *, I *, T *, T *, I *, T *, I *, T *, I *, I *, I *,
                         size_t))routine;
    I rows = I(m.rows), columns = I(m.columns), k = std::min(rows, columns), error = 0, length = -1;
    I height = full ? columns : k, width = full ? rows : k;
    std::vector<I> integers(8 * k);
    T *a = (T *)PyArray_DATA(work) + from * rows * columns, *values = (T *)PyArray_DATA(s) + from * k;
    T *left = u ? (T *)PyArray_DATA(u) + from * rows * width : nullptr;
    T *right = vh ? (T *)PyArray_DATA(vh) + from * height * columns : nullptr, wanted, none;
    const char *job = !u ? "N" : full ? "A" : "S";
    if (!u) left = right = &none;
    run(job, &rows, &columns, a, &rows, values, left, &rows, right, &height, &wanted, &length,
        integers.data(), &error, 1);
    if (error) return false;
    length = I(wanted);
    std::vector<T> space(std::max<I>(length, 1));
    for (npy_intp item = from; item < to; item++) {
        run(job, &rows, &columns, a, &rows, values, left, &rows, right, &height, space.data(), &length,
            integers.data(), &error, 1);
        if (error) return false;
        a += rows * columns, values += k;
        if (u) left += rows * width, right += height * columns;
    }
    return true;
}

template <class T, class>
static void identities(const Matrices &m, npy_intp n, PyArrayObject *x) {
    T *to = (T *)PyArray_DATA(x);
    for (npy_intp i = 0; i < m.items * n * n; i++) to[i] = T(i / n % n == i % n);
}

// svd(a, full): U, S and Vh
static PyObject *svd(Args a, Py_ssize_t n, PyObject *) {
    Matrices m;
    if (n != 2 || !read(a[0], m)) return declined();
    bool full = is_true(a[1]);
    npy_intp k = std::min(m.rows, m.columns);
    void *routine = gesdd.find(m.type());
    if (!routine) return declined();
    PyArrayObject *work = copied(m), *u = by_columns(m, m.rows, full ? m.rows : k),
                  *s = one_each(m, k, m.type()), *vh = by_columns(m, full ? m.columns : k, m.columns);
    bool good = work && u && s && vh;
    if (good && !m.empty()) good = DISPATCH_EACH(m, svd_each, routine, m, work, u, s, vh, full);
    else if (good && full) {
        DISPATCH(m.type(), identities, m, m.rows, u);
        DISPATCH(m.type(), identities, m, m.columns, vh);
    }
    Py_XDECREF(work);
    return good ? results({u, s, vh}) : drop({u, s, vh});
}

// svdvals(a)
static PyObject *svdvals(Args a, Py_ssize_t n, PyObject *) {
    Matrices m;
    if (n != 1 || !read(a[0], m)) return declined();
    void *routine = gesdd.find(m.type());
    if (!routine) return declined();
    PyArrayObject *work = copied(m), *s = one_each(m, std::min(m.rows, m.columns), m.type());
    bool good = work && s;
    if (good && !m.empty()) good = DISPATCH_EACH(m, svd_each, routine, m, work, nullptr, s, nullptr, false);
    Py_XDECREF(work);
    return good ? (PyObject *)s : drop({s});
}

// ---- eigenvalues --------------------------------------------------------------------------------

static Routine syevd{"syevd"}, geev{"geev"};

template <class T, class I>
static bool eigh_each(void *routine, const Matrices &m, PyArrayObject *vectors, PyArrayObject *values,
                      const char *job, const char *half, npy_intp from, npy_intp to) {
    auto run = (void (*)(const char *, const char *, I *, T *, I *, T *, T *, I *, I *, I *, I *, size_t,
                         size_t))routine;
    I n = I(m.rows), error = 0, length = -1, count = -1, integers;
    T *a = (T *)PyArray_DATA(vectors) + from * n * n, *w = (T *)PyArray_DATA(values) + from * n, wanted;
    run(job, half, &n, a, &n, w, &wanted, &length, &integers, &count, &error, 1, 1);
    if (error) return false;
    length = I(wanted), count = integers;
    std::vector<T> space(std::max<I>(length, 1));
    std::vector<I> places(std::max<I>(count, 1));
    for (npy_intp item = from; item < to; item++, a += n * n, w += n) {
        run(job, half, &n, a, &n, w, space.data(), &length, places.data(), &count, &error, 1, 1);
        if (error) return false;
    }
    return true;
}

static PyObject *symmetric(Args a, Py_ssize_t n, bool vectors) {
    Matrices m;
    char half = n == 2 ? letter(a[1]) & ~32 : 0;
    if ((half != 'L' && half != 'U') || !read(a[0], m) || m.rows != m.columns) return declined();
    void *routine = syevd.find(m.type());
    if (!routine) return declined();
    PyArrayObject *v = copied(m), *w = one_each(m, m.rows, m.type());
    bool good = v && w;
    if (good && !m.empty())
        good = DISPATCH_EACH(m, eigh_each, routine, m, v, w, vectors ? "V" : "N", half == 'L' ? "L" : "U");
    if (!good) return drop({v, w});
    if (vectors) return results({w, v});
    Py_DECREF(v);
    return (PyObject *)w;
}

// eigh(a, uplo): eigenvalues and eigenvectors; eigvalsh(a, uplo)
static PyObject *eigh(Args a, Py_ssize_t n, PyObject *) { return symmetric(a, n, true); }
static PyObject *eigvalsh(Args a, Py_ssize_t n, PyObject *) { return symmetric(a, n, false); }

template <class T, class I>
static bool eig_each(void *routine, const Matrices &m, PyArrayObject *work, PyArrayObject *values,
                     PyArrayObject *vectors, npy_intp from, npy_intp to) {
    auto run = (void (*)(const char *, const char *, I *, T *, I *, T *, T *, T *, I *, T *, I *, T *, I *,
                         I *, size_t, size_t))routine;
    I n = I(m.rows), error = 0, length = std::max<I>(34 * n, 1);
    std::vector<T> space(length), found(n * n);
    T *a = (T *)PyArray_DATA(work) + from * n * n, re[LONGEST_SIDE], im[LONGEST_SIDE], none;
    T *w = (T *)PyArray_DATA(values) + 2 * from * n;
    T *v = vectors ? (T *)PyArray_DATA(vectors) + 2 * from * n * n : nullptr;
    for (npy_intp i = 0; i < (to - from) * n * n; i++)
        if (!std::isfinite(a[i])) return false;
    for (npy_intp item = from; item < to; item++, a += n * n) {
        run("N", v ? "V" : "N", &n, a, &n, re, im, &none, &n, found.data(), &n, space.data(), &length, &error, 1, 1);
        if (error) return false;
        for (I i = 0; i < n; i++) *w++ = re[i], *w++ = im[i];
        if (!v) continue;
        for (I j = 0; j < n; j++) {  // a pair of conjugates is kept as one vector of reals, one of imaginaries
            const T *real = found.data() + j * n, *imaginary = real + n;
            bool pair = im[j] != 0;
            for (I i = 0; i < n; i++) {
                v[2 * (j * n + i)] = real[i], v[2 * (j * n + i) + 1] = pair ? imaginary[i] : T(0);
                if (pair) v[2 * ((j + 1) * n + i)] = real[i], v[2 * ((j + 1) * n + i) + 1] = -imaginary[i];
            }
            j += pair;
        }
        v += 2 * n * n;
    }
    return true;
}

static PyObject *general(Args a, Py_ssize_t n, bool wants_vectors) {
    Matrices m;
    if (n != 1 || !read(a[0], m) || m.rows != m.columns) return declined();
    void *routine = geev.find(m.type());
    if (!routine) return declined();
    int type = m.type() == NPY_FLOAT ? NPY_CFLOAT : NPY_CDOUBLE;
    PyArrayObject *work = copied(m), *values = one_each(m, m.rows, type), *vectors = nullptr;
    if (wants_vectors) {
        npy_intp dims[NPY_MAXDIMS];
        std::copy(m.dims, m.dims + m.lead + 2, dims);
        PyArrayObject *flat = (PyArrayObject *)PyArray_SimpleNew(m.lead + 2, dims, type);
        vectors = flat ? (PyArrayObject *)PyArray_SwapAxes(flat, m.lead, m.lead + 1) : nullptr;
        Py_XDECREF(flat);
    }
    bool good = work && values && (vectors || !wants_vectors);
    if (good && !m.empty()) good = DISPATCH_EACH(m, eig_each, routine, m, work, values, vectors);
    Py_XDECREF(work);
    if (!good) return drop({values, vectors});
    return wants_vectors ? results({values, vectors}) : (PyObject *)values;
}

// eig(a): eigenvalues and eigenvectors; eigvals(a)
static PyObject *eig(Args a, Py_ssize_t n, PyObject *) { return general(a, n, true); }
static PyObject *eigvals(Args a, Py_ssize_t n, PyObject *) { return general(a, n, false); }

// ---- ranks and pseudo-inverses ------------------------------------------------------------------

// A limit that is one number; false: it is of another kind.
static bool read_limit(PyObject *given, double &value) {
    if (given == Py_None) return true;
    if (!PyFloat_Check(given) && !PyLong_Check(given)) return false;
    value = PyFloat_AsDouble(given);
    return true;
}

struct Limits {
    double absolute = 0, relative = -1;  // of the largest; negative: what rounding may make of zero
    template <class T>
    T of(const T *values, npy_intp k, npy_intp longest) const {
        T largest = 0;
        for (npy_intp i = 0; i < k; i++) largest = std::max(largest, std::abs(values[i]));
        double r = relative >= 0 ? relative : absolute > 0 ? 0 : double(std::numeric_limits<T>::epsilon()) * longest;
        return T(std::max(absolute, r * double(largest)));
    }
};

// The singular values of `m` (of symmetric matrices the eigenvalues) and if wanted their vectors.
static bool spectrum(const Matrices &m, bool hermitian, PyArrayObject *work, PyArrayObject *u,
                     PyArrayObject *s, PyArrayObject *vh) {
    void *routine = (hermitian ? syevd : gesdd).find(m.type());
    if (!routine) return false;
    if (hermitian) return DISPATCH_EACH(m, eigh_each, routine, m, work, s, u ? "V" : "N", "L");
    return DISPATCH_EACH(m, svd_each, routine, m, work, u, s, vh, false);
}

template <class T, class>
static void count_each(const Matrices &m, PyArrayObject *s, Limits limits, PyArrayObject *ranks) {
    npy_intp k = std::min(m.rows, m.columns);
    const T *values = (const T *)PyArray_DATA(s);
    npy_int64 *found = (npy_int64 *)PyArray_DATA(ranks);
    for (npy_intp item = 0; item < m.items; item++, values += k) {
        T limit = limits.of(values, k, std::max(m.rows, m.columns));
        found[item] = std::count_if(values, values + k, [=](T v) { return std::abs(v) > limit; });
    }
}

static bool read_limits(Args a, Limits &limits) {
    double relative = -1;
    if (!read_limit(a[1], limits.absolute) || !read_limit(a[2], relative)) return false;
    limits.relative = relative;
    return a[2] == Py_None || relative >= 0;
}

// matrix_rank(a, atol, rtol, hermitian)
static PyObject *matrix_rank(Args a, Py_ssize_t n, PyObject *) {
    Matrices m;
    Limits limits;
    if (n != 4 || !read(a[0], m) || !read_limits(a, limits)) return declined();
    bool hermitian = is_true(a[3]);
    if (hermitian && m.rows != m.columns) return declined();
    PyArrayObject *work = copied(m), *s = one_each(m, std::min(m.rows, m.columns), m.type()),
                  *ranks = one_each(m, -1, NPY_INT64);
    bool good = work && s && ranks;
    if (good && !m.empty()) {
        good = spectrum(m, hermitian, work, nullptr, s, nullptr);
        if (good) DISPATCH(m.type(), count_each, m, s, limits, ranks);
    }
    Py_XDECREF(work), Py_XDECREF(s);
    return good ? (PyObject *)ranks : drop({ranks});
}

// Columns of u times 1 / s times rows of vh, transposed; of a symmetric matrix both are its vectors.
template <class T, class>
static void pinv_each(const Matrices &m, const PyArrayObject *u, PyArrayObject *s, const PyArrayObject *vh,
                      Limits limits, PyArrayObject *found) {
    npy_intp rows = m.rows, columns = m.columns, k = std::min(rows, columns);
    const T *left = (const T *)PyArray_DATA(const_cast<PyArrayObject *>(u));
    const T *right = vh ? (const T *)PyArray_DATA(const_cast<PyArrayObject *>(vh)) : left;
    const T *values = (const T *)PyArray_DATA(s);
    T *to = (T *)PyArray_DATA(found);
    npy_intp across = vh ? k : 1, along = vh ? 1 : rows;  // of element (c, i) of V
    for (npy_intp item = 0; item < m.items; item++) {
        T limit = limits.of(values, k, std::max(rows, columns));
        for (npy_intp i = 0; i < k; i++) {
            if (!(std::abs(values[i]) > limit)) continue;
            T inverse = 1 / values[i];
            for (npy_intp c = 0; c < columns; c++) {
                T factor = right[c * across + i * along] * inverse;
                for (npy_intp r = 0; r < rows; r++) to[c * rows + r] += factor * left[i * rows + r];
            }
        }
        left += rows * k, right += k * columns, values += k, to += rows * columns;
    }
}

// pinv(a, atol, rtol, hermitian)
static PyObject *pinv(Args a, Py_ssize_t n, PyObject *) {
    Matrices m;
    Limits limits;
    if (n != 4 || !read(a[0], m) || !read_limits(a, limits)) return declined();
    bool hermitian = is_true(a[3]);
    npy_intp k = std::min(m.rows, m.columns);
    if (hermitian && m.rows != m.columns) return declined();
    PyArrayObject *work = copied(m), *s = one_each(m, k, m.type()), *found = by_rows(m, m.columns, m.rows);
    PyArrayObject *u = hermitian ? nullptr : by_columns(m, m.rows, k), *vh = hermitian ? nullptr : by_columns(m, k, m.columns);
    bool good = work && s && found && (hermitian || (u && vh));
    if (good && !m.empty()) {
        good = spectrum(m, hermitian, work, hermitian ? work : u, s, vh);
        if (good) DISPATCH(m.type(), pinv_each, m, hermitian ? work : u, s, vh, limits, found);
    }
    Py_XDECREF(work), Py_XDECREF(s), Py_XDECREF(u), Py_XDECREF(vh);
    return good ? (PyObject *)found : drop({found});
}

}  // namespace linalg

int register_orthogonal(PyObject *module) {
    using namespace linalg;
    struct {
        const char *name;
        Native run;
    } all[] = {{"geqrf", geqrf}, {"householder_product", householder_product}, {"ormqr", ormqr}, {"qr", qr},
               {"svd", svd}, {"svdvals", svdvals}, {"eigh", eigh}, {"eigvalsh", eigvalsh}, {"eig", eig},
               {"eigvals", eigvals}, {"matrix_rank", matrix_rank}, {"pinv", pinv}};
    for (auto &f : all)
        if (make_function(module, f.name, f.run)) return -1;
    return 0;
}
