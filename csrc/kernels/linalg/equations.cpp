// Factors of small real square matrices and equations with them: LAPACK's routines, with all that is
// around them. The twins, which also do what is not small or not real, are in kernels/linalg/lapack.py; a
// kernel here declines what is not its case. Results lie column by column, as LAPACK has them.
#include "kernels/linalg/matrices.h"
#include "kernels/linalg/tiny.h"

namespace linalg {

static bool square(const Matrices &m) { return m.rows == m.columns; }

static bool any_failure(PyArrayObject *info) {
    const int32_t *failed = (const int32_t *)PyArray_DATA(info);
    return std::any_of(failed, failed + PyArray_SIZE(info), [](int32_t f) { return f != 0; });
}

// ---- Cholesky -----------------------------------------------------------------------------------

static Routine potrf{"potrf"}, potrs{"potrs"}, potri{"potri"};

template <class T, class I>
static bool cholesky_each(void *routine, const Matrices &m, PyArrayObject *factor, PyArrayObject *info,
                          bool upper, npy_intp from, npy_intp to) {
    auto run = (void (*)(const char *, I *, T *, I *, I *, size_t))routine;
    I n = I(m.rows);
    T *a = (T *)PyArray_DATA(factor) + from * n * n;
    int32_t *failed = (int32_t *)PyArray_DATA(info);
    for (npy_intp item = from; item < to; item++, a += n * n) {
        I found = 0;
        if (n <= tiny::TINY) found = I(tiny::cholesky(a, n, upper));
        else run(upper ? "U" : "L", &n, a, &n, &found, 1);
        for (I j = 0; j < n; j++)
            for (I i = upper ? j + 1 : 0; i < (upper ? n : j); i++) a[j * n + i] = 0;
        for (I j = 0; j < n && !found; j++)
            if (std::isnan(a[j * n + j])) found = j + 1;  // passed over by some libraries
        failed[item] = int32_t(found);
    }
    return true;
}

// cholesky_ex(a, upper, check_errors): the factor, and where it failed
static PyObject *cholesky_ex(Args a, Py_ssize_t n, PyObject *) {
    Matrices m;
    if (n != 3 || !read(a[0], m) || !square(m)) return declined();
    void *routine = potrf.find(m.type());
    if (!routine) return declined();
    PyArrayObject *factor = copied(m), *info = one_each(m, -1, NPY_INT32);
    if (factor && info && !m.empty())
        DISPATCH_EACH(m, cholesky_each, routine, m, factor, info, is_true(a[1]));
    if (is_true(a[2]) && info && any_failure(info)) return drop({factor, info});
    return results({factor, info});
}

template <class T, class I>
static bool cholesky_solve_each(void *routine, const Matrices &m, PyArrayObject *l, PyArrayObject *x,
                                npy_intp columns, const char *half, npy_intp from, npy_intp to) {
    auto run = (void (*)(const char *, I *, I *, T *, I *, T *, I *, I *, size_t))routine;
    I n = I(m.rows), k = I(columns), error = 0;
    T *a = (T *)PyArray_DATA(l) + from * n * n, *b = (T *)PyArray_DATA(x) + from * n * k;
    for (npy_intp item = from; item < to; item++, a += n * n, b += n * k) {
        if (n <= tiny::FEW) {  // L Lᵀ x = b, or with Uᵀ U
            bool upper = *half == 'U';
            tiny::substitute(a, b, n, k, upper, upper, false);
            tiny::substitute(a, b, n, k, upper, !upper, false);
        } else {
            run(half, &n, &k, a, &n, b, &n, &error, 1);
        }
    }
    return true;
}

// cholesky_solve(b, l, upper)
static PyObject *cholesky_solve(Args a, Py_ssize_t n, PyObject *) {
    Matrices m, b;
    if (n != 3 || !read(a[1], m) || !square(m) || !read(a[0], b, m.type()) || !same_lead(m, b) ||
        b.rows != m.rows)
        return declined();
    void *routine = potrs.find(m.type());
    if (!routine) return declined();
    PyArrayObject *l = copied(m), *x = copied(b);
    if (l && x && !b.empty())
        DISPATCH_EACH(m, cholesky_solve_each, routine, m, l, x, b.columns, is_true(a[2]) ? "U" : "L");
    Py_XDECREF(l);
    return (PyObject *)x;
}

template <class T, class I>
static bool cholesky_inverse_each(void *routine, const Matrices &m, PyArrayObject *x, bool upper,
                                  npy_intp from, npy_intp to) {
    auto run = (void (*)(const char *, I *, T *, I *, I *, size_t))routine;
    I n = I(m.rows), error = 0;
    T *a = (T *)PyArray_DATA(x) + from * n * n;
    for (npy_intp item = from; item < to; item++, a += n * n) {
        run(upper ? "U" : "L", &n, a, &n, &error, 1);
        if (error) return false;
        for (I j = 0; j < n; j++)
            for (I i = 0; i < j; i++) (upper ? a[i * n + j] : a[j * n + i]) = upper ? a[j * n + i] : a[i * n + j];
    }
    return true;
}

// cholesky_inverse(l, upper)
static PyObject *cholesky_inverse(Args a, Py_ssize_t n, PyObject *) {
    Matrices m;
    if (n != 2 || !read(a[0], m) || !square(m)) return declined();
    void *routine = potri.find(m.type());
    if (!routine) return declined();
    PyArrayObject *x = copied(m);
    if (x && !m.empty() && !DISPATCH_EACH(m, cholesky_inverse_each, routine, m, x, is_true(a[1])))
        return drop({x});
    return (PyObject *)x;
}

// ---- LU -----------------------------------------------------------------------------------------

static Routine getrf{"getrf"}, getrs{"getrs"};

template <class T, class I>
static bool lu_each(void *routine, const Matrices &m, PyArrayObject *lu, PyArrayObject *pivots,
                    PyArrayObject *info, npy_intp from, npy_intp to) {
    auto run = (void (*)(I *, I *, T *, I *, I *, I *))routine;
    I rows = I(m.rows), columns = I(m.columns), k = std::min(rows, columns);
    T *a = (T *)PyArray_DATA(lu) + from * rows * columns;
    int32_t *places = (int32_t *)PyArray_DATA(pivots) + from * k, *failed = (int32_t *)PyArray_DATA(info);
    I found[LONGEST_SIDE];
    for (npy_intp item = from; item < to; item++, a += rows * columns) {
        I error = 0;
        if (rows <= tiny::TINY && columns <= tiny::TINY) error = I(tiny::lu(a, rows, columns, found));
        else run(&rows, &columns, a, &rows, found, &error);
        for (I i = 0; i < k; i++) *places++ = int32_t(found[i]);
        failed[item] = int32_t(error);
    }
    return true;
}

// lu_factor_ex(a, pivot, check_errors): both factors in one, row exchanges counted from 1, failures
static PyObject *lu_factor_ex(Args a, Py_ssize_t n, PyObject *) {
    Matrices m;
    if (n != 3 || !is_true(a[1]) || !read(a[0], m)) return declined();
    void *routine = getrf.find(m.type());
    if (!routine) return declined();
    PyArrayObject *lu = copied(m), *pivots = one_each(m, std::min(m.rows, m.columns), NPY_INT32),
                  *info = one_each(m, -1, NPY_INT32);
    if (lu && pivots && info && !m.empty()) DISPATCH_EACH(m, lu_each, routine, m, lu, pivots, info);
    if (is_true(a[2]) && info && any_failure(info)) return drop({lu, pivots, info});
    return results({lu, pivots, info});
}

// The exchanges of each matrix, with negative ones for pairs if those may be; null: not of this kind.
static const int32_t *read_pivots(PyObject *object, const Matrices &m, npy_intp n, bool pairs = false) {
    PyArrayObject *p = (PyArrayObject *)object;
    if (!PyArray_CheckExact(object) || PyArray_TYPE(p) != NPY_INT32 || !PyArray_IS_C_CONTIGUOUS(p) ||
        PyArray_NDIM(p) != m.lead + 1 || PyArray_DIM(p, m.lead) != n ||
        !std::equal(m.dims, m.dims + m.lead, PyArray_DIMS(p)))
        return nullptr;
    const int32_t *found = (const int32_t *)PyArray_DATA(p);
    for (npy_intp i = 0; i < m.items * n; i++) {
        int32_t row = pairs && found[i] < 0 ? -found[i] : found[i];
        if (row < 1 || row > m.rows) return nullptr;
    }
    return found;
}

template <class T, class I>
static bool lu_solve_each(void *routine, const Matrices &m, PyArrayObject *lu, const int32_t *pivots,
                          PyArrayObject *x, npy_intp columns, const char *way, npy_intp from, npy_intp to) {
    auto run = (void (*)(const char *, I *, I *, T *, I *, I *, T *, I *, I *, size_t))routine;
    I n = I(m.rows), k = I(columns), error;
    T *a = (T *)PyArray_DATA(lu) + from * n * n, *b = (T *)PyArray_DATA(x) + from * n * k;
    I places[LONGEST_SIDE];
    pivots += from * n;
    for (npy_intp item = from; item < to; item++, a += n * n, b += n * k, pivots += n) {
        std::copy(pivots, pivots + n, places);
        run(way, &n, &k, a, &n, places, b, &n, &error, 1);
    }
    return true;
}

// lu_solve(lu, pivots, b, left, adjoint): x with a x = b, or aᵀ x = b
static PyObject *lu_solve(Args a, Py_ssize_t n, PyObject *) {
    Matrices m, b;
    if (n != 5 || !is_true(a[3]) || !read(a[0], m) || !square(m) || !read(a[2], b, m.type()) ||
        !same_lead(m, b) || b.rows != m.rows)
        return declined();
    const int32_t *pivots = read_pivots(a[1], m, m.rows);
    void *routine = pivots ? getrs.find(m.type()) : nullptr;
    if (!routine) return declined();
    PyArrayObject *lu = copied(m), *x = copied(b);
    if (lu && x && !b.empty())
        DISPATCH_EACH(m, lu_solve_each, routine, m, lu, pivots, x, b.columns, is_true(a[4]) ? "T" : "N");
    Py_XDECREF(lu);
    return (PyObject *)x;
}

template <class T, class>
static void unpack_each(const Matrices &m, PyArrayObject *lu, PyArrayObject *l, PyArrayObject *u) {
    npy_intp rows = m.rows, columns = m.columns, k = std::min(rows, columns);
    const T *a = (const T *)PyArray_DATA(lu);
    T *low = (T *)PyArray_DATA(l), *high = (T *)PyArray_DATA(u);
    for (npy_intp item = 0; item < m.items; item++, a += rows * columns) {
        for (npy_intp i = 0; i < rows; i++)
            for (npy_intp j = 0; j < k; j++) *low++ = i > j ? a[j * rows + i] : T(i == j);
        for (npy_intp i = 0; i < k; i++)
            for (npy_intp j = 0; j < columns; j++) *high++ = i > j ? T(0) : a[j * rows + i];
    }
}

template <class T, class>
static void permute_each(const Matrices &m, const int32_t *pivots, PyArrayObject *p) {
    npy_intp n = m.rows, k = std::min(m.rows, m.columns), order[LONGEST_SIDE];
    T *to = (T *)PyArray_DATA(p);
    for (npy_intp item = 0; item < m.items; item++, to += n * n, pivots += k) {
        for (npy_intp i = 0; i < n; i++) order[i] = i;
        for (npy_intp i = 0; i < k; i++) std::swap(order[i], order[pivots[i] - 1]);
        for (npy_intp j = 0; j < n; j++) to[order[j] * n + j] = 1;
    }
}

// lu_unpack(lu, pivots, unpack_data, unpack_pivots): P, L and U
static PyObject *lu_unpack(Args a, Py_ssize_t n, PyObject *) {
    Matrices m;
    if (n != 4 || !is_true(a[2]) || !is_true(a[3]) || !read(a[0], m)) return declined();
    npy_intp k = std::min(m.rows, m.columns);
    const int32_t *pivots = read_pivots(a[1], m, k);
    if (!pivots) return declined();
    PyArrayObject *lu = copied(m), *p = by_rows(m, m.rows, m.rows), *l = by_rows(m, m.rows, k),
                  *u = by_rows(m, k, m.columns);
    if (lu && p && l && u) {
        DISPATCH(m.type(), unpack_each, m, lu, l, u);
        DISPATCH(m.type(), permute_each, m, pivots, p);
    }
    Py_XDECREF(lu);
    return results({p, l, u});
}

// lu(a, pivot): P, L and U
static PyObject *lu(Args a, Py_ssize_t n, PyObject *) {
    PyObject *given[] = {a[0], a[1], Py_False}, *found = n == 2 ? lu_factor_ex(given, 3, nullptr) : declined();
    if (!found || found == Py_NotImplemented) return found;
    PyObject *factors[] = {PyTuple_GET_ITEM(found, 0), PyTuple_GET_ITEM(found, 1), Py_True, Py_True};
    PyObject *parts = lu_unpack(factors, 4, nullptr);
    Py_DECREF(found);
    return parts;
}

// ---- determinants -------------------------------------------------------------------------------

// Of each factorisation the determinant; or its sign, and the logarithm of its size.
template <class T, class>
static void products_of_pivots(const Matrices &m, PyArrayObject *lu, PyArrayObject *pivots, PyArrayObject *signs,
                               PyArrayObject *logarithms) {
    npy_intp n = m.rows;
    const T *a = (const T *)PyArray_DATA(lu);
    const int32_t *places = (const int32_t *)PyArray_DATA(pivots);
    T *found = (T *)PyArray_DATA(signs), *sizes = logarithms ? (T *)PyArray_DATA(logarithms) : nullptr;
    for (npy_intp item = 0; item < m.items; item++, a += n * n, places += n) {
        double product = 1, sum = 0;
        for (npy_intp i = 0; i < n; i++) {
            double pivot = a[i * (n + 1)];
            if (places[i] != i + 1) product = -product;
            if (!sizes) {
                product *= pivot;
            } else {
                sum += std::log(std::fabs(pivot));
                product = pivot == 0 ? 0 : pivot < 0 ? -product : pivot == pivot ? product : pivot;
            }
        }
        found[item] = T(product);
        if (sizes) sizes[item] = T(sum);
    }
}

static PyObject *determinants(PyObject *given, bool logarithmic) {
    Matrices m;
    if (!read(given, m) || !square(m)) return declined();
    void *routine = getrf.find(m.type());
    if (!routine) return declined();
    PyArrayObject *lu = copied(m), *pivots = one_each(m, m.rows, NPY_INT32), *info = one_each(m, -1, NPY_INT32);
    PyArrayObject *signs = one_each(m, -1, m.type()), *sizes = logarithmic ? one_each(m, -1, m.type()) : nullptr;
    bool good = lu && pivots && info && signs && (sizes || !logarithmic);
    if (good) {
        if (!m.empty()) DISPATCH_EACH(m, lu_each, routine, m, lu, pivots, info);
        DISPATCH(m.type(), products_of_pivots, m, lu, pivots, signs, sizes);
    }
    Py_XDECREF(lu), Py_XDECREF(pivots), Py_XDECREF(info);
    if (!good) return drop({signs, sizes});
    return logarithmic ? results({signs, sizes}) : (PyObject *)signs;
}

// det(a); slogdet(a): signs, and logarithms of sizes
static PyObject *det(Args a, Py_ssize_t n, PyObject *) { return n == 1 ? determinants(a[0], false) : declined(); }
static PyObject *slogdet(Args a, Py_ssize_t n, PyObject *) { return n == 1 ? determinants(a[0], true) : declined(); }

// ---- symmetric matrices -------------------------------------------------------------------------

static Routine sytrf{"sytrf"}, sytrs{"sytrs"};

template <class T, class I>
static void ldl_each(void *routine, const Matrices &m, PyArrayObject *ld, PyArrayObject *pivots,
                     PyArrayObject *info) {
    auto run = (void (*)(const char *, I *, T *, I *, I *, T *, I *, I *, size_t))routine;
    I n = I(m.rows), length = 64 * n, found[LONGEST_SIDE];
    std::vector<T> work(length);
    T *a = (T *)PyArray_DATA(ld);
    int32_t *places = (int32_t *)PyArray_DATA(pivots), *failed = (int32_t *)PyArray_DATA(info);
    for (npy_intp item = 0; item < m.items; item++, a += n * n) {
        I error = 0;
        run("L", &n, a, &n, found, work.data(), &length, &error, 1);
        for (I i = 0; i < n; i++) *places++ = int32_t(found[i]);
        failed[item] = int32_t(error);
        for (I j = 0; j < n; j++) std::fill(a + j * n, a + j * n + j, T(0));
    }
}

// ldl_factor_ex(a, hermitian, check_errors): the factors in one, row exchanges, failures
static PyObject *ldl_factor_ex(Args a, Py_ssize_t n, PyObject *) {
    Matrices m;
    if (n != 3 || !read(a[0], m) || !square(m)) return declined();
    void *routine = sytrf.find(m.type());
    if (!routine) return declined();
    PyArrayObject *ld = copied(m), *pivots = one_each(m, m.rows, NPY_INT32), *info = one_each(m, -1, NPY_INT32);
    OneThread one(m);
    if (ld && pivots && info && !m.empty()) DISPATCH(m.type(), ldl_each, routine, m, ld, pivots, info);
    if (is_true(a[2]) && info && any_failure(info)) return drop({ld, pivots, info});
    return results({ld, pivots, info});
}

// ldl_solve(ld, pivots, b, hermitian)
static PyObject *ldl_solve(Args a, Py_ssize_t n, PyObject *) {
    Matrices m, b;
    if (n != 4 || !read(a[0], m) || !square(m) || !read(a[2], b, m.type()) || !same_lead(m, b) ||
        b.rows != m.rows)
        return declined();
    const int32_t *pivots = read_pivots(a[1], m, m.rows, true);
    void *routine = pivots ? sytrs.find(m.type()) : nullptr;
    if (!routine) return declined();
    PyArrayObject *ld = copied(m), *x = copied(b);
    if (ld && x && !b.empty())
        DISPATCH_EACH(m, lu_solve_each, routine, m, ld, pivots, x, b.columns, "L");
    Py_XDECREF(ld);
    return (PyObject *)x;
}

// ---- triangular equations -----------------------------------------------------------------------

static Routine trsm{"trsm"};

struct Way {
    const char *side, *half, *turned, *ones;
};

template <class T, class I>
static bool triangular_each(void *routine, const Matrices &m, PyArrayObject *left, PyArrayObject *x,
                            const Matrices &right, Way way, npy_intp from, npy_intp to) {
    auto run = (void (*)(const char *, const char *, const char *, const char *, I *, I *, T *, T *, I *,
                         T *, I *, size_t, size_t, size_t, size_t))routine;
    I n = I(m.rows), rows = I(right.rows), columns = I(right.columns);
    T *a = (T *)PyArray_DATA(left) + from * n * n, *b = (T *)PyArray_DATA(x) + from * rows * columns, one = 1;
    for (npy_intp item = from; item < to; item++, a += n * n, b += rows * columns)
        if (n <= tiny::FEW && *way.side == 'L')
            tiny::substitute(a, b, rows, columns, *way.half == 'U', *way.turned == 'T', *way.ones == 'U');
        else
            run(way.side, way.half, way.turned, way.ones, &rows, &columns, &one, a, &n, b, &rows, 1, 1, 1, 1);
    return true;
}

// The solution of a x = b, or x a = b; `left` becomes the copy of a.
static PyArrayObject *solve_triangle(PyObject *given, PyObject *right, Way way, PyArrayObject **left) {
    Matrices m, b;
    if (!read(given, m) || !square(m) || !read(right, b, m.type()) || !same_lead(m, b) ||
        (*way.side == 'L' ? b.rows : b.columns) != m.rows)
        return nullptr;
    void *routine = trsm.find(m.type());
    if (!routine) return nullptr;
    PyArrayObject *x = copied(b);
    *left = copied(m);
    if (*left && x && !b.empty()) DISPATCH_EACH(m, triangular_each, routine, m, *left, x, b, way);
    return x;
}

// solve_triangular(a, b, upper, left, unitriangular)
static PyObject *solve_triangular(Args a, Py_ssize_t n, PyObject *) {
    if (n != 5) return declined();
    PyArrayObject *copy = nullptr, *x = solve_triangle(
        a[0], a[1], {is_true(a[3]) ? "L" : "R", is_true(a[2]) ? "U" : "L", "N", is_true(a[4]) ? "U" : "N"},
        &copy);
    Py_XDECREF(copy);
    return x ? (PyObject *)x : declined();
}

// triangular_solve(b, a, upper, transpose, unitriangular): the solution, and a copy of a
static PyObject *triangular_solve(Args a, Py_ssize_t n, PyObject *) {
    if (n != 5) return declined();
    PyArrayObject *copy = nullptr, *x = solve_triangle(
        a[1], a[0], {"L", is_true(a[2]) ? "U" : "L", is_true(a[3]) ? "T" : "N", is_true(a[4]) ? "U" : "N"},
        &copy);
    return x ? results({x, copy}) : drop({copy});
}

// ---- equations ----------------------------------------------------------------------------------

static Routine gesv{"gesv"};

template <class T, class I>
static bool solve_each(void *routine, npy_intp order, PyArrayObject *left, PyArrayObject *x,
                       npy_intp columns, PyArrayObject *info, npy_intp from, npy_intp to) {
    auto run = (void (*)(I *, I *, T *, I *, I *, T *, I *, I *))routine;
    I n = I(order), k = I(columns), places[LONGEST_SIDE];
    T *a = (T *)PyArray_DATA(left) + from * n * n, *b = (T *)PyArray_DATA(x) + from * n * k;
    int32_t *failed = (int32_t *)PyArray_DATA(info);
    for (npy_intp item = from; item < to; item++, a += n * n, b += n * k) {
        I error = 0;
        if (n <= tiny::TINY) error = I(tiny::solve(a, b, n, k, places));
        else run(&n, &k, a, &n, places, b, &n, &error);
        failed[item] = int32_t(error);
        if (error) std::fill(b, b + n * k, std::numeric_limits<T>::quiet_NaN());
    }
    return true;
}

// Vectors of a batch as torch lays them out: as if they were the columns of matrices
static PyArrayObject *laid_as_columns(PyArrayObject *x) {
    int nd = PyArray_NDIM(x);
    npy_intp dims[NPY_MAXDIMS];
    std::copy(PyArray_DIMS(x), PyArray_DIMS(x) + nd, dims);
    std::swap(dims[nd - 1], dims[nd - 2]);
    PyArrayObject *flat = (PyArrayObject *)PyArray_SimpleNew(nd, dims, PyArray_TYPE(x));
    PyArrayObject *turned = flat ? (PyArrayObject *)PyArray_SwapAxes(flat, nd - 2, nd - 1) : nullptr;
    Py_XDECREF(flat);
    if (turned && PyArray_CopyInto(turned, x) < 0) Py_CLEAR(turned);
    Py_DECREF(x);
    return turned;
}

// solve_ex(a, b, left, check_errors): the solution, and for each matrix its first zero pivot
static PyObject *solve_ex(Args a, Py_ssize_t n, PyObject *) {
    Matrices m, b;
    bool vector = false;
    if (n != 4 || !read(a[0], m) || !square(m) || !read_right(a[1], b, m, &vector)) return declined();
    bool left = is_true(a[2]);
    if (!left && vector) return declined();
    if (!left) m.turn(), b.turn();  // x a = b is aᵀ xᵀ = bᵀ
    void *routine = b.rows == m.rows ? gesv.find(m.type()) : nullptr;
    if (!routine) return declined();
    PyArrayObject *copy = copied(m), *x = copied(b, vector), *info = one_each(m, -1, NPY_INT32);
    if (copy && x && info && !b.empty())
        DISPATCH_EACH(m, solve_each, routine, m.rows, copy, x, b.columns, info);
    Py_XDECREF(copy);
    if (x && info && any_failure(info) && is_true(a[3])) return drop({x, info});
    if (x && !left) Py_SETREF(x, (PyArrayObject *)PyArray_SwapAxes(x, b.lead, b.lead + 1));
    if (x && vector && b.lead) x = laid_as_columns(x);
    return results({x, info});
}

// inv_ex(a, check_errors): the inverse, and for each matrix its first zero pivot
static PyObject *inv_ex(Args a, Py_ssize_t n, PyObject *) {
    Matrices m;
    if (n != 2 || !read(a[0], m) || !square(m)) return declined();
    void *routine = gesv.find(m.type());
    if (!routine) return declined();
    PyArrayObject *copy = copied(m), *x = by_columns(m, m.rows, m.rows), *info = one_each(m, -1, NPY_INT32);
    if (copy && x && info && !m.empty()) {
        std::memset(PyArray_DATA(x), 0, PyArray_NBYTES(x));
        for (npy_intp i = 0; i < m.items * m.rows; i++) {
            npy_intp at = i / m.rows * m.rows * m.rows + i % m.rows * (m.rows + 1);
            if (m.type() == NPY_FLOAT) ((float *)PyArray_DATA(x))[at] = 1;
            else ((double *)PyArray_DATA(x))[at] = 1;
        }
        DISPATCH_EACH(m, solve_each, routine, m.rows, copy, x, m.rows, info);
    }
    Py_XDECREF(copy);
    if (info && any_failure(info) && is_true(a[1])) return drop({x, info});
    return results({x, info});
}

// ---- least squares ------------------------------------------------------------------------------

// By QR of a matrix of full rank (gels), by QR with pivoting (gelsy), by SVD (gelsd: divide and conquer; gelss)
enum Driver { GELS, GELSY, GELSD, GELSS };
static Routine drivers[] = {{"gels"}, {"gelsy"}, {"gelsd"}, {"gelss"}};

struct LeastSquares {
    Driver driver;
    void *routine;
    const Matrices &m, &b;
    double limit;  // what is below so many times the largest singular value counts as zero
    PyArrayObject *left, *right, *x, *rank = nullptr, *values = nullptr, *residuals = nullptr;
};

template <class T, class I>
static bool lstsq_each(const LeastSquares &p, npy_intp begin, npy_intp end) {
    I rows = I(p.m.rows), columns = I(p.m.columns), k = I(p.b.columns), error = 0, found = 0;
    I high = std::max(rows, columns), low = std::min(rows, columns), length = -1;
    T limit = T(p.limit), longest = 0;
    char as_it_is = 'N';
    I order[LONGEST_SIDE], integers_needed = 0;
    std::vector<I> integers;
    T *a = (T *)PyArray_DATA(p.left) + begin * rows * columns, *to = (T *)PyArray_DATA(p.x) + begin * high * k;
    T *values = p.values ? (T *)PyArray_DATA(p.values) + begin * low : nullptr;
    auto run = [&](T *work, I *places) {
        if (p.driver == GELS)
            ((void (*)(char *, I *, I *, I *, T *, I *, T *, I *, T *, I *, I *, size_t))p.routine)(
                &as_it_is, &rows, &columns, &k, a, &rows, to, &high, work, &length, &error, 1);
        else if (p.driver == GELSY)
            ((void (*)(I *, I *, I *, T *, I *, T *, I *, I *, T *, I *, T *, I *, I *))p.routine)(
                &rows, &columns, &k, a, &rows, to, &high, order, &limit, &found, work, &length, &error);
        else if (p.driver == GELSD)
            ((void (*)(I *, I *, I *, T *, I *, T *, I *, T *, T *, I *, T *, I *, I *, I *))p.routine)(
                &rows, &columns, &k, a, &rows, to, &high, values, &limit, &found, work, &length, places, &error);
        else
            ((void (*)(I *, I *, I *, T *, I *, T *, I *, T *, T *, I *, T *, I *, I *))p.routine)(
                &rows, &columns, &k, a, &rows, to, &high, values, &limit, &found, work, &length, &error);
    };
    run(&longest, &integers_needed);  // a call with the length -1 says how long the workspaces are to be
    if (error) return false;
    std::vector<T> work(std::max(I(1), length = I(longest)));
    integers.resize(std::max(I(1), integers_needed));
    const T *from = (const T *)PyArray_DATA(p.right) + begin * rows * k;
    T *residual = p.residuals ? (T *)PyArray_DATA(p.residuals) + begin * k : nullptr;
    for (npy_intp item = begin; item < end; item++, a += rows * columns, from += rows * k, to += high * k) {
        for (I j = 0; j < k; j++) std::copy(from + j * rows, from + (j + 1) * rows, to + j * high);
        if (p.driver == GELSY) std::fill(order, order + columns, I(0));
        run(work.data(), integers.data());
        if (error) return false;
        if (p.rank) ((npy_int64 *)PyArray_DATA(p.rank))[item] = found;
        if (values) values += low;
        for (I j = 0; residual && j < k; j++) {  // what is left of `b` stands below the solution
            T sum = 0;
            for (I i = columns; i < rows; i++) sum += to[j * high + i] * to[j * high + i];
            *residual++ = sum;
        }
    }
    return true;
}

// The first `n` along an axis, as a view that takes over the reference to `x`
static PyArrayObject *narrowed(PyArrayObject *x, int axis, npy_intp n) {
    npy_intp shape[NPY_MAXDIMS];
    std::copy(PyArray_DIMS(x), PyArray_DIMS(x) + PyArray_NDIM(x), shape);
    shape[axis] = n;
    PyArrayObject *view = (PyArrayObject *)PyArray_New(&PyArray_Type, PyArray_NDIM(x), shape, PyArray_TYPE(x),
                                                       PyArray_STRIDES(x), PyArray_DATA(x), 0,
                                                       NPY_ARRAY_WRITEABLE | NPY_ARRAY_ALIGNED, nullptr);
    if (!view) Py_DECREF(x);
    else if (PyArray_SetBaseObject(view, (PyObject *)x) < 0) Py_CLEAR(view);
    return view;
}

// Have all matrices the rank n?
static bool all_of_rank(PyArrayObject *rank, npy_intp n) {
    const npy_int64 *found = (const npy_int64 *)PyArray_DATA(rank);
    return std::all_of(found, found + PyArray_SIZE(rank), [n](npy_int64 one) { return one == n; });
}

// lstsq(a, b, rcond, driver): solution, squared residuals, ranks, singular values; LAPACK writes the
// solution over what `b` was copied to, which may have more rows
static PyObject *lstsq(Args a, Py_ssize_t n, PyObject *) {
    Matrices m, b;
    bool vector = false;
    int driver = n == 4 && a[3] == Py_None ? GELSY : 0;
    if (n != 4) return declined();
    if (a[3] != Py_None)
        while (PyUnicode_CompareWithASCIIString(a[3], drivers[driver].name))
            if (++driver > GELSS) return declined();
    if (!read(a[0], m) || m.empty() || !read_right(a[1], b, m, &vector) || b.rows != m.rows || b.empty())
        return declined();
    double limit = a[2] == Py_None ? (m.type() == NPY_FLOAT ? double(std::numeric_limits<float>::epsilon())
                                                            : std::numeric_limits<double>::epsilon()) *
                                         double(std::max(m.rows, m.columns))
                                   : PyFloat_AsDouble(a[2]);
    void *routine = PyErr_Occurred() ? nullptr : drivers[driver].find(m.type());
    if (!routine) return declined();
    npy_intp high = std::max(m.rows, m.columns), none = 0;
    bool by_values = driver == GELSD || driver == GELSS, tall = m.rows > m.columns && driver != GELSY;
    auto nothing = [&](int type) { return (PyArrayObject *)PyArray_ZEROS(1, &none, type, 0); };
    LeastSquares p{Driver(driver), routine, m, b, limit, copied(m), copied(b, vector),
                   vector ? one_each(m, high, m.type()) : by_columns(m, high, b.columns)};
    PyArrayObject *rank = driver == GELS ? nothing(NPY_INT64) : one_each(m, -1, NPY_INT64),
                  *values = by_values ? one_each(m, std::min(m.rows, m.columns), m.type()) : nothing(m.type()),
                  *residuals = tall ? one_each(m, b.columns, m.type()) : nothing(m.type());
    if (driver != GELS) p.rank = rank;
    if (by_values) p.values = values;
    if (tall) p.residuals = residuals;
    bool good = p.left && p.right && p.x && rank && values && residuals && DISPATCH_EACH(m, lstsq_each, p);
    Py_XDECREF(p.left), Py_XDECREF(p.right);
    if (!good) return drop({p.x, residuals, rank, values});
    if (tall && driver != GELS && !all_of_rank(rank, m.columns)) Py_SETREF(residuals, nothing(m.type()));
    PyArrayObject *x = narrowed(p.x, m.lead, m.columns);
    return x ? results({x, residuals, rank, values}) : drop({residuals, rank, values});
}

}  // namespace linalg

int register_equations(PyObject *module) {
    using namespace linalg;
    struct {
        const char *name;
        Native run;
    } all[] = {{"cholesky_ex", cholesky_ex}, {"cholesky_solve", cholesky_solve},
               {"cholesky_inverse", cholesky_inverse}, {"lu_factor_ex", lu_factor_ex}, {"lu_solve", lu_solve},
               {"lu_unpack", lu_unpack}, {"lu", lu}, {"det", det}, {"slogdet", slogdet}, {"ldl_factor_ex", ldl_factor_ex}, {"ldl_solve", ldl_solve},
               {"solve_triangular", solve_triangular}, {"triangular_solve", triangular_solve},
               {"solve_ex", solve_ex}, {"inv_ex", inv_ex}, {"lstsq", lstsq}};
    for (auto &f : all)
        if (make_function(module, f.name, f.run)) return -1;
    return 0;
}
