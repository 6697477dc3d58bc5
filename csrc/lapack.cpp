// Factorisations of small real matrices: LAPACK's routines, called by their addresses, with all that
// is around them. Readable twins, which also do what is not small or not real: kernels/lapack.py. A
// function here gives None where it is not its case. Matrices are the last two dimensions; results
// lie column by column, as LAPACK has them.
#include "common.h"

#include <algorithm>
#include <vector>

namespace {

using Args = PyObject *const *;
constexpr npy_intp SMALL = 32, ITEMS = 4096;  // for more, threads are worth their while

PyObject *not_mine() {
    PyErr_Clear();
    Py_RETURN_NONE;
}

struct Matrices {
    PyArrayObject *array = nullptr;
    npy_intp items = 1, rows = 0, columns = 0;
    int lead = 0;
    npy_intp *dims = nullptr;
};

// Reads an array of matrices of float32 or float64, none of which is large.
bool read(PyObject *object, Matrices &m, int type = -1) {
    if (!PyArray_CheckExact(object)) return false;
    m.array = (PyArrayObject *)object;
    int kind = PyArray_TYPE(m.array), nd = PyArray_NDIM(m.array);
    if (nd < 2 || (kind != NPY_FLOAT && kind != NPY_DOUBLE) || (type >= 0 && kind != type)) return false;
    m.dims = PyArray_DIMS(m.array), m.lead = nd - 2;
    m.rows = m.dims[nd - 2], m.columns = m.dims[nd - 1];
    for (int d = 0; d < m.lead; d++) m.items *= m.dims[d];
    return m.rows <= SMALL && m.columns <= SMALL && m.items <= ITEMS && PyArray_ISALIGNED(m.array) &&
           PyArray_ISNOTSWAPPED(m.array);
}

bool same_lead(const Matrices &a, const Matrices &b) {
    return a.lead == b.lead && std::equal(a.dims, a.dims + a.lead, b.dims);
}

// New matrices in the leading dimensions of `like`, each column by column.
PyArrayObject *by_columns(const Matrices &like, npy_intp rows, npy_intp columns) {
    npy_intp dims[NPY_MAXDIMS];
    std::copy(like.dims, like.dims + like.lead, dims);
    dims[like.lead] = columns, dims[like.lead + 1] = rows;
    PyArrayObject *flat = (PyArrayObject *)PyArray_SimpleNew(like.lead + 2, dims, PyArray_TYPE(like.array));
    if (!flat) return nullptr;
    PyObject *turned = PyArray_SwapAxes(flat, like.lead, like.lead + 1);
    Py_DECREF(flat);
    return (PyArrayObject *)turned;
}

// New vectors, or single numbers, one for each matrix.
PyArrayObject *one_each(const Matrices &like, npy_intp n, int type) {
    npy_intp dims[NPY_MAXDIMS];
    std::copy(like.dims, like.dims + like.lead, dims);
    dims[like.lead] = n;
    return (PyArrayObject *)PyArray_ZEROS(like.lead + (n >= 0), dims, type, 0);
}

template <class T>
void copy_columns(const Matrices &m, T *to) {
    npy_intp row = PyArray_STRIDE(m.array, m.lead), column = PyArray_STRIDE(m.array, m.lead + 1);
    npy_intp at[NPY_MAXDIMS] = {0};
    const char *from = PyArray_BYTES(m.array);
    for (npy_intp item = 0; item < m.items; item++) {
        for (npy_intp j = 0; j < m.columns; j++)
            for (npy_intp i = 0; i < m.rows; i++) *to++ = *(const T *)(from + i * row + j * column);
        for (int d = m.lead - 1; d >= 0; d--) {
            from += PyArray_STRIDE(m.array, d);
            if (++at[d] < m.dims[d]) break;
            from -= PyArray_STRIDE(m.array, d) * at[d];
            at[d] = 0;
        }
    }
}

// A copy of the matrices, column by column.
PyArrayObject *copied(const Matrices &m) {
    PyArrayObject *to = by_columns(m, m.rows, m.columns);
    if (!to || !m.items) return to;
    if (PyArray_TYPE(to) == NPY_FLOAT) copy_columns(m, (float *)PyArray_DATA(to));
    else copy_columns(m, (double *)PyArray_DATA(to));
    return to;
}

// Owned references, given as a tuple; of a null one all are dropped.
PyObject *results(std::initializer_list<PyArrayObject *> found) {
    bool whole = true;
    for (PyArrayObject *a : found) whole &= a != nullptr;
    PyObject *tuple = whole ? PyTuple_New(Py_ssize_t(found.size())) : nullptr;
    Py_ssize_t i = 0;
    for (PyArrayObject *a : found)
        if (tuple) PyTuple_SET_ITEM(tuple, i++, (PyObject *)a);
        else Py_XDECREF(a);
    return tuple;
}

void drop(std::initializer_list<PyArrayObject *> found) {
    for (PyArrayObject *a : found) Py_XDECREF(a);
}

void *routine(PyObject *address) {
    void *found = PyLong_AsVoidPtr(address);
    if (!found) PyErr_Clear();
    return found;
}

// Runs `body<element, integer>(…)` for the type of the array and the integers of the library.
#define DISPATCH(array, wide, body, ...)                                                     \
    (PyArray_TYPE(array) == NPY_FLOAT                                                        \
         ? ((wide) ? body<float, int64_t>(__VA_ARGS__) : body<float, int32_t>(__VA_ARGS__))  \
         : ((wide) ? body<double, int64_t>(__VA_ARGS__) : body<double, int32_t>(__VA_ARGS__)))

// ---- Cholesky -----------------------------------------------------------------------------------

template <class T, class I>
int cholesky_each(void *potrf, const Matrices &m, PyArrayObject *factor, PyArrayObject *info, bool upper) {
    auto run = (void (*)(const char *, I *, T *, I *, I *, size_t))potrf;
    I n = I(m.rows), order = std::max<I>(n, 1);
    T *a = (T *)PyArray_DATA(factor);
    int32_t *failed = (int32_t *)PyArray_DATA(info);
    for (npy_intp item = 0; item < m.items; item++, a += n * n) {
        I found = 0;
        run(upper ? "U" : "L", &n, a, &order, &found, 1);
        for (I j = 0; j < n; j++)
            for (I i = upper ? j + 1 : 0; i < (upper ? n : j); i++) a[j * n + i] = 0;
        for (I j = 0; j < n && !found; j++)
            if (std::isnan(a[j * n + j])) found = j + 1;  // passed over by some libraries
        failed[item] = int32_t(found);
    }
    return 0;
}

// small_cholesky(potrf, wide, a, upper): the factor, and where it failed
PyObject *cholesky(PyObject *, Args a, Py_ssize_t n) {
    Matrices m;
    void *potrf = n == 4 ? routine(a[0]) : nullptr;
    if (!potrf || !read(a[2], m) || m.rows != m.columns) return not_mine();
    PyArrayObject *factor = copied(m), *info = one_each(m, -1, NPY_INT32);
    if (factor && info && m.rows)
        DISPATCH(factor, a[1] == Py_True, cholesky_each, potrf, m, factor, info, a[3] == Py_True);
    return results({factor, info});
}

// ---- LU -----------------------------------------------------------------------------------------

template <class T, class I>
int lu_each(void *getrf, const Matrices &m, PyArrayObject *lu, PyArrayObject *pivots, PyArrayObject *info) {
    auto run = (void (*)(I *, I *, T *, I *, I *, I *))getrf;
    I rows = I(m.rows), columns = I(m.columns), k = std::min(rows, columns);
    T *a = (T *)PyArray_DATA(lu);
    int32_t *places = (int32_t *)PyArray_DATA(pivots), *failed = (int32_t *)PyArray_DATA(info);
    I found[SMALL];
    for (npy_intp item = 0; item < m.items; item++, a += rows * columns) {
        I error = 0;
        run(&rows, &columns, a, &rows, found, &error);
        for (I i = 0; i < k; i++) *places++ = int32_t(found[i]);
        failed[item] = int32_t(error);
    }
    return 0;
}

// small_lu_factor(getrf, wide, a): both factors in one, row exchanges counted from 1, and failures
PyObject *lu_factor(PyObject *, Args a, Py_ssize_t n) {
    Matrices m;
    void *getrf = n == 3 ? routine(a[0]) : nullptr;
    if (!getrf || !read(a[2], m) || !m.rows || !m.columns) return not_mine();
    PyArrayObject *lu = copied(m), *pivots = one_each(m, std::min(m.rows, m.columns), NPY_INT32),
                  *info = one_each(m, -1, NPY_INT32);
    if (lu && pivots && info) DISPATCH(lu, a[1] == Py_True, lu_each, getrf, m, lu, pivots, info);
    return results({lu, pivots, info});
}

// The exchanges of each matrix; null: not of this kind.
const int32_t *read_pivots(PyObject *object, const Matrices &m, npy_intp n) {
    PyArrayObject *p = (PyArrayObject *)object;
    if (!PyArray_CheckExact(object) || PyArray_TYPE(p) != NPY_INT32 || !PyArray_IS_C_CONTIGUOUS(p) ||
        PyArray_NDIM(p) != m.lead + 1 || PyArray_DIM(p, m.lead) != n ||
        !std::equal(m.dims, m.dims + m.lead, PyArray_DIMS(p)))
        return nullptr;
    const int32_t *found = (const int32_t *)PyArray_DATA(p);
    for (npy_intp i = 0; i < m.items * n; i++)
        if (found[i] < 1 || found[i] > m.rows) return nullptr;
    return found;
}

template <class T, class I>
int lu_solve_each(void *getrs, const Matrices &m, PyArrayObject *lu, const int32_t *pivots, PyArrayObject *x,
                  npy_intp columns, const char *way) {
    auto run = (void (*)(const char *, I *, I *, T *, I *, I *, T *, I *, I *, size_t))getrs;
    I n = I(m.rows), k = I(columns), error;
    T *a = (T *)PyArray_DATA(lu), *b = (T *)PyArray_DATA(x);
    I places[SMALL];
    for (npy_intp item = 0; item < m.items; item++, a += n * n, b += n * k, pivots += n) {
        std::copy(pivots, pivots + n, places);
        run(way, &n, &k, a, &n, places, b, &n, &error, 1);
    }
    return 0;
}

// small_lu_solve(getrs, wide, lu, pivots, b, transposed): x with a x = b, or aᵀ x = b
PyObject *lu_solve(PyObject *, Args a, Py_ssize_t n) {
    Matrices m, b;
    void *getrs = n == 6 ? routine(a[0]) : nullptr;
    if (!getrs || !read(a[2], m) || m.rows != m.columns || !m.rows ||
        !read(a[4], b, PyArray_TYPE(m.array)) || !same_lead(m, b) || b.rows != m.rows || !b.columns)
        return not_mine();
    const int32_t *pivots = read_pivots(a[3], m, m.rows);
    if (!pivots) return not_mine();
    PyArrayObject *lu = copied(m), *x = copied(b);
    if (lu && x)
        DISPATCH(lu, a[1] == Py_True, lu_solve_each, getrs, m, lu, pivots, x, b.columns,
                 a[5] == Py_True ? "T" : "N");
    Py_XDECREF(lu);
    return (PyObject *)x;
}

template <class T, class>
int unpack_each(const Matrices &m, PyArrayObject *lu, PyArrayObject *l, PyArrayObject *u) {
    npy_intp rows = m.rows, columns = m.columns, k = std::min(rows, columns);
    const T *a = (const T *)PyArray_DATA(lu);
    T *low = (T *)PyArray_DATA(l), *high = (T *)PyArray_DATA(u);
    for (npy_intp item = 0; item < m.items; item++, a += rows * columns) {
        for (npy_intp i = 0; i < rows; i++)
            for (npy_intp j = 0; j < k; j++) *low++ = i > j ? a[j * rows + i] : T(i == j);
        for (npy_intp i = 0; i < k; i++)
            for (npy_intp j = 0; j < columns; j++) *high++ = i > j ? T(0) : a[j * rows + i];
    }
    return 0;
}

template <class T, class>
int permute_each(const Matrices &m, const int32_t *pivots, PyArrayObject *p) {
    npy_intp n = m.rows, k = std::min(m.rows, m.columns), order[SMALL];
    T *to = (T *)PyArray_DATA(p);
    for (npy_intp item = 0; item < m.items; item++, to += n * n, pivots += k) {
        for (npy_intp i = 0; i < n; i++) order[i] = i;
        for (npy_intp i = 0; i < k; i++) std::swap(order[i], order[pivots[i] - 1]);
        for (npy_intp j = 0; j < n; j++) to[order[j] * n + j] = 1;
    }
    return 0;
}

// Arrays of matrices row by row, of zeros.
PyArrayObject *by_rows(const Matrices &like, npy_intp rows, npy_intp columns) {
    npy_intp dims[NPY_MAXDIMS];
    std::copy(like.dims, like.dims + like.lead, dims);
    dims[like.lead] = rows, dims[like.lead + 1] = columns;
    return (PyArrayObject *)PyArray_ZEROS(like.lead + 2, dims, PyArray_TYPE(like.array), 0);
}

// small_lu_unpack(lu, pivots): P, L and U
PyObject *lu_unpack(PyObject *, Args a, Py_ssize_t n) {
    Matrices m;
    if (n != 2 || !read(a[0], m) || !m.rows || !m.columns) return not_mine();
    npy_intp k = std::min(m.rows, m.columns);
    const int32_t *pivots = read_pivots(a[1], m, k);
    if (!pivots) return not_mine();
    PyArrayObject *lu = copied(m), *p = by_rows(m, m.rows, m.rows), *l = by_rows(m, m.rows, k),
                  *u = by_rows(m, k, m.columns);
    if (lu && p && l && u) {
        DISPATCH(lu, true, unpack_each, m, lu, l, u);
        DISPATCH(lu, true, permute_each, m, pivots, p);
    }
    Py_XDECREF(lu);
    return results({p, l, u});
}

// ---- triangular equations -----------------------------------------------------------------------

template <class T, class I>
int triangular_each(void *trsm, const Matrices &m, PyArrayObject *left, PyArrayObject *x, npy_intp columns,
                    const char *half, const char *ones) {
    auto run = (void (*)(const char *, const char *, const char *, const char *, I *, I *, T *, T *, I *,
                         T *, I *, size_t, size_t, size_t, size_t))trsm;
    I n = I(m.rows), k = I(columns);
    T *a = (T *)PyArray_DATA(left), *b = (T *)PyArray_DATA(x), one = 1;
    for (npy_intp item = 0; item < m.items; item++, a += n * n, b += n * k)
        run("L", half, "N", ones, &n, &k, &one, a, &n, b, &n, 1, 1, 1, 1);
    return 0;
}

// small_solve_triangular(trsm, wide, a, b, upper, unitriangular)
PyObject *solve_triangular(PyObject *, Args a, Py_ssize_t n) {
    Matrices m, b;
    void *trsm = n == 6 ? routine(a[0]) : nullptr;
    if (!trsm || !read(a[2], m) || m.rows != m.columns || !m.rows ||
        !read(a[3], b, PyArray_TYPE(m.array)) || !same_lead(m, b) || b.rows != m.rows || !b.columns)
        return not_mine();
    PyArrayObject *left = copied(m), *x = copied(b);
    if (left && x)
        DISPATCH(left, a[1] == Py_True, triangular_each, trsm, m, left, x, b.columns,
                 a[4] == Py_True ? "U" : "L", a[5] == Py_True ? "U" : "N");
    Py_XDECREF(left);
    return (PyObject *)x;
}

// ---- QR -----------------------------------------------------------------------------------------

template <class T, class I>
int qr_each(void *geqrf, void *orgqr, const Matrices &m, PyArrayObject *work, PyArrayObject *q,
            npy_intp wide, PyArrayObject *r) {
    auto factor = (void (*)(I *, I *, T *, I *, T *, T *, I *, I *))geqrf;
    auto form = (void (*)(I *, I *, I *, T *, I *, T *, T *, I *, I *))orgqr;
    I rows = I(m.rows), columns = I(m.columns), k = std::min(rows, columns), error, width = I(wide);
    I length = 64 * std::max(rows, columns);
    std::vector<T> space(length);
    T tau[SMALL], *a = (T *)PyArray_DATA(work), *to = (T *)PyArray_DATA(q), *upper = (T *)PyArray_DATA(r);
    npy_intp height = std::min(npy_intp(wide), m.rows);
    for (npy_intp item = 0; item < m.items; item++, a += rows * columns) {
        factor(&rows, &columns, a, &rows, tau, space.data(), &length, &error);
        for (I j = 0; j < columns; j++)
            for (I i = 0; i < I(height); i++) *upper++ = i <= j ? a[j * rows + i] : T(0);
        std::copy(a, a + rows * std::min(width, columns), to);
        form(&rows, &width, &k, to, &rows, tau, space.data(), &length, &error);
        to += rows * width;
    }
    return 0;
}

// small_qr(geqrf, orgqr, wide, a, complete): Q and R
PyObject *qr(PyObject *, Args a, Py_ssize_t n) {
    Matrices m;
    void *geqrf = n == 5 ? routine(a[0]) : nullptr, *orgqr = n == 5 ? routine(a[1]) : nullptr;
    if (!geqrf || !orgqr || !read(a[3], m) || !m.rows || !m.columns) return not_mine();
    npy_intp wide = a[4] == Py_True ? m.rows : std::min(m.rows, m.columns);
    PyArrayObject *work = copied(m), *q = by_columns(m, m.rows, wide), *r = by_columns(m, wide, m.columns);
    if (work && q && r) DISPATCH(work, a[2] == Py_True, qr_each, geqrf, orgqr, m, work, q, wide, r);
    Py_XDECREF(work);
    return results({q, r});
}

// ---- singular values ----------------------------------------------------------------------------

template <class T, class I>
int svd_each(void *gesdd, const Matrices &m, PyArrayObject *work, PyArrayObject *u, PyArrayObject *s,
             PyArrayObject *vh, bool full) {
    auto run = (void (*)(const char *, I *, I *, T *, I *, T *, T *, I *, T *, I *, T *, I *, I *, I *,
                         size_t))gesdd;
    I rows = I(m.rows), columns = I(m.columns), k = std::min(rows, columns), error = 0, length = -1;
    I height = full ? columns : k, width = full ? rows : k;
    std::vector<I> integers(8 * k);
    T *a = (T *)PyArray_DATA(work), *left = (T *)PyArray_DATA(u), *values = (T *)PyArray_DATA(s),
      *right = (T *)PyArray_DATA(vh), wanted;
    const char *job = full ? "A" : "S";
    run(job, &rows, &columns, a, &rows, values, left, &rows, right, &height, &wanted, &length,
        integers.data(), &error, 1);
    if (error) return -1;
    length = I(wanted);
    std::vector<T> space(std::max<I>(length, 1));
    for (npy_intp item = 0; item < m.items; item++) {
        run(job, &rows, &columns, a, &rows, values, left, &rows, right, &height, space.data(), &length,
            integers.data(), &error, 1);
        if (error) return -1;
        a += rows * columns, left += rows * width, values += k, right += height * columns;
    }
    return 0;
}

// small_svd(gesdd, wide, a, full): U, S and Vh
PyObject *svd(PyObject *, Args a, Py_ssize_t n) {
    Matrices m;
    void *gesdd = n == 4 ? routine(a[0]) : nullptr;
    if (!gesdd || !read(a[2], m)) return not_mine();
    bool full = a[3] == Py_True;
    npy_intp k = std::min(m.rows, m.columns);
    if (!k && full) return not_mine();
    PyArrayObject *work = copied(m), *u = by_columns(m, m.rows, full ? m.rows : k),
                  *s = one_each(m, k, PyArray_TYPE(m.array)),
                  *vh = by_columns(m, full ? m.columns : k, m.columns);
    int failed = 0;
    if (work && u && s && vh && k && m.items)
        failed = DISPATCH(work, a[1] == Py_True, svd_each, gesdd, m, work, u, s, vh, full);
    Py_XDECREF(work);
    if (failed) return drop({u, s, vh}), not_mine();
    return results({u, s, vh});
}

// ---- cross products -----------------------------------------------------------------------------

template <class T, class>
int cross_each(const T *a, const T *b, T *to, npy_intp outer, npy_intp inner) {
    for (npy_intp o = 0; o < outer; o++, a += 3 * inner, b += 3 * inner, to += 3 * inner)
        for (int i = 0; i < 3; i++) {
            const T *aj = a + (i + 1) % 3 * inner, *ak = a + (i + 2) % 3 * inner;
            const T *bj = b + (i + 1) % 3 * inner, *bk = b + (i + 2) % 3 * inner;
            for (npy_intp e = 0; e < inner; e++) {
                T first = aj[e] * bk[e], second = ak[e] * bj[e];
                to[i * inner + e] = first - second;
            }
        }
    return 0;
}

// small_cross(a, b, dim): of contiguous arrays of one shape
PyObject *cross(PyObject *, Args a, Py_ssize_t n) {
    if (n != 3 || !PyArray_CheckExact(a[0]) || !PyArray_CheckExact(a[1])) return not_mine();
    PyArrayObject *x = (PyArrayObject *)a[0], *y = (PyArrayObject *)a[1];
    int type = PyArray_TYPE(x), nd = PyArray_NDIM(x);
    long dim = PyLong_AsLong(a[2]);
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || PyArray_TYPE(y) != type || dim < 0 || dim >= nd ||
        !PyArray_IS_C_CONTIGUOUS(x) || !PyArray_IS_C_CONTIGUOUS(y) || !PyArray_SAMESHAPE(x, y) ||
        PyArray_DIM(x, int(dim)) != 3)
        return not_mine();
    npy_intp outer = 1, inner = 1;
    for (int d = 0; d < nd; d++) (d < dim ? outer : inner) *= d == dim ? 1 : PyArray_DIM(x, d);
    PyArrayObject *to = (PyArrayObject *)PyArray_SimpleNew(nd, PyArray_DIMS(x), type);
    if (!to) return nullptr;
    if (type == NPY_FLOAT)
        cross_each<float, void>((float *)PyArray_DATA(x), (float *)PyArray_DATA(y), (float *)PyArray_DATA(to),
                                outer, inner);
    else
        cross_each<double, void>((double *)PyArray_DATA(x), (double *)PyArray_DATA(y),
                                 (double *)PyArray_DATA(to), outer, inner);
    return (PyObject *)to;
}

#define FAST(name) {"small_" #name, (PyCFunction)(void (*)())name, METH_FASTCALL, nullptr}
PyMethodDef methods[] = {FAST(cholesky), FAST(lu_factor), FAST(lu_solve), FAST(lu_unpack),
                         FAST(solve_triangular), FAST(qr), FAST(svd), FAST(cross),
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

int register_lapack(PyObject *module) { return PyModule_AddFunctions(module, methods); }
