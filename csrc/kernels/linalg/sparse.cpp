// Products of a sparse matrix, given by places, and a dense one.
#include "common.h"

#include <algorithm>
#include <complex>
#include <cstring>

namespace {

// result[r] += v * dense[c] for each element v at (r, c); false where a place is outside.
template <class T>
bool multiply(const int64_t *rows, const int64_t *columns, const T *data, npy_intp count,
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

// Of each compressed row the sum, mean, amax or amin of element times row of `dense`; zeros where
// there is none. False where a place is outside.
template <class T>
bool reduce(const int64_t *starts, const int64_t *columns, const T *data, npy_intp count,
            const T *dense, npy_intp height, npy_intp width, T *result, npy_intp length,
            Reduction how) {
    for (npy_intp r = 0; r < length; r++) {
        T *to = result + r * width;
        int64_t first = starts[r], end = starts[r + 1];
        if (first < 0 || end > count || first > end) return false;
        if (first == end) std::fill(to, to + width, T(0));
        for (int64_t i = first; i < end; i++) {
            int64_t c = columns[i];
            if (c < 0 || c >= height) return false;
            const T v = data[i], *from = dense + c * width;
            if (i == first) {
                INDEPENDENT for (npy_intp j = 0; j < width; j++) to[j] = v * from[j];
            } else if (how == AMAX) {
                for (npy_intp j = 0; j < width; j++) {
                    T term = v * from[j];
                    if (term > to[j] || term != term) to[j] = term;     // NaN wins
                }
            } else if (how == AMIN) {
                for (npy_intp j = 0; j < width; j++) {
                    T term = v * from[j];
                    if (term < to[j] || term != term) to[j] = term;
                }
            } else {
                INDEPENDENT for (npy_intp j = 0; j < width; j++) to[j] += v * from[j];
            }
        }
        if (how == MEAN && end > first + 1)
            for (npy_intp j = 0; j < width; j++) to[j] /= T(end - first);
    }
    return true;
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

PyMethodDef methods[] = {{"sparse_multiply", sparse_multiply, METH_VARARGS, nullptr},
                         {"sparse_reduce", sparse_reduce, METH_VARARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

int register_sparse(PyObject *module) { return PyModule_AddFunctions(module, methods); }
