// Products of a sparse matrix, given by places or by compressed rows, and a dense one, or another sparse one.
#include "common.h"
#include "parallel.h"

#include <algorithm>
#include <atomic>
#include <complex>
#include <cstring>
#include <vector>

namespace {

// result[r] += v * dense[c] for each element v at (r, c); false where a place is outside.
template <class T>
CLONES bool multiply(const int64_t *rows, const int64_t *columns, const T *data, npy_intp count,
              const T *dense, npy_intp height, npy_intp width, T *result, npy_intp length) {
    for (npy_intp i = 0; i < count; i++) {
        int64_t r = rows[i], c = columns[i];
        if (r < 0 || r >= length || c < 0 || c >= height) return false;
        const T v = data[i], *from = dense + c * width;
        T *to = result + r * width;
        INDEPENDENT for (npy_intp j = 0; j < width; j++) to[j] += v * from[j];
    }
    return true;
}

bool fits(PyArrayObject *array, int dimensions, int type) {
    return PyArray_NDIM(array) == dimensions && PyArray_TYPE(array) == type &&
           PyArray_ISCARRAY_RO(array);
}

// sparse_multiply(rows, columns, data, dense, result of zeros): arrays in rows, of one type
PyObject *sparse_multiply(PyObject *, PyObject *args) {
    PyArrayObject *rows, *columns, *data, *dense, *result;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!", &PyArray_Type, &rows, &PyArray_Type, &columns,
                          &PyArray_Type, &data, &PyArray_Type, &dense, &PyArray_Type, &result))
        return nullptr;
    int type = PyArray_TYPE(data);
    npy_intp count = PyArray_SIZE(data);
    if (!fits(rows, 1, NPY_INT64) || !fits(columns, 1, NPY_INT64) || !fits(data, 1, type) ||
        !fits(dense, 2, type) || !fits(result, 2, type) || !PyArray_ISWRITEABLE(result) ||
        PyArray_SIZE(rows) != count || PyArray_SIZE(columns) != count ||
        PyArray_DIM(dense, 1) != PyArray_DIM(result, 1))
        return PyErr_Format(PyExc_ValueError, "sparse_multiply: arrays that do not fit");
    bool inside = true, known = true;
    auto run = [&](auto zero) {
        using T = decltype(zero);
        NPY_BEGIN_THREADS_DEF;
        NPY_BEGIN_THREADS;
        inside = multiply((const int64_t *)PyArray_DATA(rows), (const int64_t *)PyArray_DATA(columns),
                          (const T *)PyArray_DATA(data), count, (const T *)PyArray_DATA(dense),
                          PyArray_DIM(dense, 0), PyArray_DIM(dense, 1), (T *)PyArray_DATA(result),
                          PyArray_DIM(result, 0));
        NPY_END_THREADS;
    };
    switch (type) {
        case NPY_FLOAT: run(float()); break;
        case NPY_DOUBLE: run(double()); break;
        case NPY_CFLOAT: run(std::complex<float>()); break;
        case NPY_CDOUBLE: run(std::complex<double>()); break;
        case NPY_INT64: run(int64_t()); break;
        default: known = false;
    }
    if (!known) return PyErr_Format(PyExc_TypeError, "sparse_multiply: no loop for this type");
    if (!inside) return PyErr_Format(PyExc_IndexError, "sparse matrix: a place is outside of it");
    Py_RETURN_NONE;
}

enum Reduction { SUM, MEAN, AMAX, AMIN };

// The larger of two, or the smaller; a NaN wins.
template <bool MAX, class T>
INLINE T extreme(T a, T b) {
    return (MAX ? b > a : b < a) | (b != b) ? b : a;
}

// The sum, amax or amin of element times row of `dense`, over a compressed row: in the result, of which
// the compiler makes vectors.
template <class T, Reduction how>
CLONES void reduce_row(const int64_t *columns, const T *data, npy_intp count, const T *dense, npy_intp width, T *to) {
    auto row = [=](npy_intp i) { return dense + columns[i] * width; };
    const T first = data[0], *from = row(0);
    INDEPENDENT
    for (npy_intp j = 0; j < width; j++) to[j] = first * from[j];
    npy_intp i = 1;
    for (; how == SUM && i + 4 <= count; i += 4) {
        const T p = data[i], q = data[i + 1], r = data[i + 2], s = data[i + 3];
        const T *a = row(i), *b = row(i + 1), *c = row(i + 2), *d = row(i + 3);
        INDEPENDENT
        for (npy_intp j = 0; j < width; j++) to[j] += (p * a[j] + q * b[j]) + (r * c[j] + s * d[j]);
    }
    for (; i < count; i++) {
        const T v = data[i], *from = row(i);
        INDEPENDENT
        for (npy_intp j = 0; j < width; j++) {
            T term = v * from[j];
            to[j] = how == SUM ? to[j] + term : extreme<how == AMAX>(to[j], term);
        }
    }
}

// The rows of a compressed matrix, checked: false where one begins or ends, or a place is, outside.
bool rows_fit(const int64_t *starts, npy_intp length, const int64_t *columns, npy_intp count, npy_intp height) {
    for (npy_intp r = 0; r < length; r++)
        if (starts[r] < 0 || starts[r] > starts[r + 1] || starts[r + 1] > count) return false;
    bool inside = true;
    for (npy_intp i = 0; i < count; i++) inside &= columns[i] >= 0 && columns[i] < height;
    return inside;
}

// Of each compressed row the sum, mean, amax or amin of element times row of `dense`; zeros where
// there is none. False where a place is outside.
template <class T>
bool reduce(const int64_t *starts, const int64_t *columns, const T *data, npy_intp count,
            const T *dense, npy_intp height, npy_intp width, T *result, npy_intp length,
            Reduction how) {
    if (!rows_fit(starts, length, columns, count, height)) return false;
    npy_intp each = std::max<npy_intp>(1, count * width / std::max<npy_intp>(1, length));
    parallel_for(length, PARALLEL_FROM / each + 1, [&](int64_t from, int64_t end) {
        for (npy_intp r = from; r < end; r++) {
            T *to = result + r * width;
            int64_t first = starts[r], many = starts[r + 1] - first;
            const int64_t *c = columns + first;
            const T *v = data + first;
            if (!many) std::fill(to, to + width, T(0));
            else if (how == AMAX) reduce_row<T, AMAX>(c, v, many, dense, width, to);
            else if (how == AMIN) reduce_row<T, AMIN>(c, v, many, dense, width, to);
            else reduce_row<T, SUM>(c, v, many, dense, width, to);
            if (how == MEAN && many > 1)
                for (npy_intp j = 0; j < width; j++) to[j] /= T(many);
        }
    }, 1);
    return true;
}

// The elements of a @ b at the places of compressed rows; b given by its columns.
template <class T>
CLONES T dot(const T *a, const T *b, npy_intp n) {
    T sums[16] = {}, sum = 0;
    npy_intp i = 0;
    for (; i + 16 <= n; i += 16)
        for (int k = 0; k < 16; k++) sums[k] += a[i + k] * b[i + k];
    for (; i < n; i++) sum += a[i] * b[i];
    for (int k = 0; k < 16; k++) sum += sums[k];
    return sum;
}

// One sparse matrix after another: of each row of the first, its elements times rows of the second.
template <class T>
void multiply_rows(const int64_t *a_starts, const int64_t *a_columns, const T *a, npy_intp length,
                   const int64_t *b_starts, const int64_t *b_columns, const T *b, npy_intp width,
                   std::vector<int64_t> &starts, std::vector<int64_t> &columns, std::vector<T> &found) {
    std::vector<T> sums(width, T(0));
    std::vector<int64_t> seen(width, -1), here;
    starts.assign(1, 0);
    for (npy_intp r = 0; r < length; r++) {
        here.clear();
        npy_intp terms = 0;
        for (int64_t i = a_starts[r]; i < a_starts[r + 1]; i++) terms += b_starts[a_columns[i] + 1] - b_starts[a_columns[i]];
        if (terms > width / 16) {  // a row of sums, without a question at each term
            for (int64_t i = a_starts[r]; i < a_starts[r + 1]; i++)
                for (int64_t j = b_starts[a_columns[i]]; j < b_starts[a_columns[i] + 1]; j++)
                    sums[b_columns[j]] += a[i] * b[j], seen[b_columns[j]] = r;
            size_t many = columns.size();
            columns.resize(many + width), found.resize(many + width);
            for (npy_intp c = 0; c < width; c++) {
                columns[many] = c, found[many] = sums[c], sums[c] = T(0);
                many += seen[c] == r;
            }
            columns.resize(many), found.resize(many);
            starts.push_back(int64_t(many));
            continue;
        }
        for (int64_t i = a_starts[r]; i < a_starts[r + 1]; i++) {
            int64_t middle = a_columns[i];
            for (int64_t j = b_starts[middle]; j < b_starts[middle + 1]; j++) {
                int64_t c = b_columns[j];
                if (seen[c] != r) seen[c] = r, sums[c] = T(0), here.push_back(c);
                sums[c] += a[i] * b[j];
            }
        }
        std::sort(here.begin(), here.end());
        for (int64_t c : here) columns.push_back(c), found.push_back(sums[c]), sums[c] = T(0);
        starts.push_back(int64_t(columns.size()));
    }
}

// sparse_reduce(starts, columns, data, dense, result, reduction): arrays in rows, floats of one type
PyObject *sparse_reduce(PyObject *, PyObject *args) {
    PyArrayObject *starts, *columns, *data, *dense, *result;
    const char *reduction;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!s", &PyArray_Type, &starts, &PyArray_Type, &columns,
                          &PyArray_Type, &data, &PyArray_Type, &dense, &PyArray_Type, &result,
                          &reduction))
        return nullptr;
    int type = PyArray_TYPE(data);
    if (!fits(starts, 1, NPY_INT64) || !fits(columns, 1, NPY_INT64) || !fits(data, 1, type) ||
        !fits(dense, 2, type) || !fits(result, 2, type) || !PyArray_ISWRITEABLE(result) ||
        PyArray_SIZE(columns) != PyArray_SIZE(data) ||
        PyArray_SIZE(starts) != PyArray_DIM(result, 0) + 1 ||
        PyArray_DIM(dense, 1) != PyArray_DIM(result, 1))
        return PyErr_Format(PyExc_ValueError, "sparse_reduce: arrays that do not fit");
    if (type != NPY_FLOAT && type != NPY_DOUBLE)
        return PyErr_Format(PyExc_TypeError, "sparse_reduce: no loop for this type");
    static const char *names[] = {"sum", "mean", "amax", "amin"};
    int how = 0;
    while (how <= AMIN && strcmp(names[how], reduction)) how++;
    if (how > AMIN) return PyErr_Format(PyExc_ValueError, "sparse_reduce: no %s", reduction);
    bool inside = true;
    auto run = [&](auto zero) {
        using T = decltype(zero);
        NPY_BEGIN_THREADS_DEF;
        NPY_BEGIN_THREADS;
        inside = reduce((const int64_t *)PyArray_DATA(starts),
                        (const int64_t *)PyArray_DATA(columns), (const T *)PyArray_DATA(data),
                        PyArray_SIZE(data), (const T *)PyArray_DATA(dense), PyArray_DIM(dense, 0),
                        PyArray_DIM(dense, 1), (T *)PyArray_DATA(result), PyArray_DIM(result, 0),
                        (Reduction)how);
        NPY_END_THREADS;
    };
    type == NPY_FLOAT ? run(float()) : run(double());
    if (!inside) return PyErr_Format(PyExc_IndexError, "sparse matrix: a place is outside of it");
    Py_RETURN_NONE;
}

template <class T>
PyObject *array_of(const std::vector<T> &values, int type) {
    npy_intp n = npy_intp(values.size());
    PyObject *array = PyArray_SimpleNew(1, &n, type);
    if (array && n) std::memcpy(PyArray_DATA((PyArrayObject *)array), values.data(), n * sizeof(T));
    return array;
}

// sparse_rows_multiply(starts, columns, data, starts, columns, data, columns of the second): the product
// of two matrices in compressed rows, as it
PyObject *sparse_rows_multiply(PyObject *, PyObject *args) {
    PyArrayObject *x[6];
    Py_ssize_t width;
    PyTypeObject *kind = &PyArray_Type;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!O!n", kind, &x[0], kind, &x[1], kind, &x[2], kind, &x[3], kind, &x[4], kind,
                          &x[5], &width))
        return nullptr;
    int type = PyArray_TYPE(x[2]);
    for (int i = 0; i < 6; i++)
        if (!fits(x[i], 1, i % 3 == 2 ? type : NPY_INT64))
            return PyErr_Format(PyExc_ValueError, "sparse_rows_multiply: arrays that do not fit");
    auto of = [&](int i) { return (const int64_t *)PyArray_DATA(x[i]); };
    npy_intp length = PyArray_SIZE(x[0]) - 1, height = PyArray_SIZE(x[3]) - 1;
    if (length < 0 || height < 0 || PyArray_SIZE(x[1]) != PyArray_SIZE(x[2]) || PyArray_SIZE(x[4]) != PyArray_SIZE(x[5]) ||
        !rows_fit(of(0), length, of(1), PyArray_SIZE(x[1]), height) ||
        !rows_fit(of(3), height, of(4), PyArray_SIZE(x[4]), width))
        return PyErr_Format(PyExc_IndexError, "sparse matrix: a place is outside of it");
    auto run = [&](auto zero) -> PyObject * {
        using T = decltype(zero);
        std::vector<int64_t> starts, columns;
        std::vector<T> found;
        NPY_BEGIN_THREADS_DEF;
        NPY_BEGIN_THREADS;
        multiply_rows(of(0), of(1), (const T *)PyArray_DATA(x[2]), length, of(3), of(4), (const T *)PyArray_DATA(x[5]),
                      width, starts, columns, found);
        NPY_END_THREADS;
        return Py_BuildValue("(NNN)", array_of(starts, NPY_INT64), array_of(columns, NPY_INT64), array_of(found, type));
    };
    switch (type) {
        case NPY_FLOAT: return run(float());
        case NPY_DOUBLE: return run(double());
        case NPY_CFLOAT: return run(std::complex<float>());
        case NPY_CDOUBLE: return run(std::complex<double>());
        case NPY_INT64: return run(int64_t());
        default: return PyErr_Format(PyExc_TypeError, "sparse_rows_multiply: no loop for this type");
    }
}

// sparse_sampled(starts, columns, a, b by columns, result): floats of one type
PyObject *sparse_sampled(PyObject *, PyObject *args) {
    PyArrayObject *starts, *columns, *a, *b, *result;
    PyTypeObject *kind = &PyArray_Type;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!", kind, &starts, kind, &columns, kind, &a, kind, &b, kind, &result))
        return nullptr;
    int type = PyArray_TYPE(a);
    if (!fits(starts, 1, NPY_INT64) || !fits(columns, 1, NPY_INT64) || !fits(a, 2, type) || !fits(b, 2, type) ||
        !fits(result, 1, type) || (type != NPY_FLOAT && type != NPY_DOUBLE) ||
        PyArray_SIZE(starts) != PyArray_DIM(a, 0) + 1 || PyArray_DIM(a, 1) != PyArray_DIM(b, 1) ||
        PyArray_SIZE(result) != PyArray_SIZE(columns))
        return PyErr_Format(PyExc_ValueError, "sparse_sampled: arrays that do not fit");
    const int64_t *first = (const int64_t *)PyArray_DATA(starts), *at = (const int64_t *)PyArray_DATA(columns);
    npy_intp length = PyArray_DIM(a, 0), k = PyArray_DIM(a, 1), count = PyArray_SIZE(columns);
    if (!rows_fit(first, length, at, count, PyArray_DIM(b, 0)))
        return PyErr_Format(PyExc_IndexError, "sparse matrix: a place is outside of it");
    auto run = [&](auto zero) {
        using T = decltype(zero);
        const T *left = (const T *)PyArray_DATA(a), *right = (const T *)PyArray_DATA(b);
        T *to = (T *)PyArray_DATA(result);
        NPY_BEGIN_THREADS_DEF;
        NPY_BEGIN_THREADS;
        npy_intp each = std::max<npy_intp>(1, count * k / std::max<npy_intp>(1, length));
        parallel_for(length, PARALLEL_FROM / each + 1, [&](int64_t from, int64_t end) {
            for (npy_intp r = from; r < end; r++)
                for (int64_t i = first[r]; i < first[r + 1]; i++) to[i] = dot(left + r * k, right + at[i] * k, k);
        }, 1);
        NPY_END_THREADS;
    };
    type == NPY_FLOAT ? run(float()) : run(double());
    Py_RETURN_NONE;
}

PyMethodDef methods[] = {{"sparse_multiply", sparse_multiply, METH_VARARGS, nullptr},
                         {"sparse_reduce", sparse_reduce, METH_VARARGS, nullptr},
                         {"sparse_rows_multiply", sparse_rows_multiply, METH_VARARGS, nullptr},
                         {"sparse_sampled", sparse_sampled, METH_VARARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

int register_sparse(PyObject *module) { return PyModule_AddFunctions(module, methods); }
