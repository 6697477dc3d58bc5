// New arrays of sizes and numbers. Each takes canonical arguments and a NumPy type, and says
// NotImplemented where its twin in flambeau/kernels/creation.py knows more, or raises.
#include "common.h"

#include <algorithm>

namespace {

using Args = PyObject *const *;

PyObject *not_mine() {
    PyErr_Clear();
    Py_RETURN_NOTIMPLEMENTED;
}

// A new array of a shape, a tuple; of zeros, or as memory is.
PyObject *make(PyObject *shape, PyObject *type, bool zero) {
    if (!PyTuple_CheckExact(shape) || !PyArray_DescrCheck(type)) return not_mine();
    int n = int(PyTuple_GET_SIZE(shape));
    npy_intp dims[NPY_MAXDIMS];
    if (n > NPY_MAXDIMS) return not_mine();
    for (int d = 0; d < n; d++) {
        dims[d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, d));
        if (dims[d] < 0) return not_mine();
    }
    Py_INCREF(type);
    return zero ? PyArray_Zeros(n, dims, (PyArray_Descr *)type, 0)
                : PyArray_Empty(n, dims, (PyArray_Descr *)type, 0);
}

PyArrayObject *row(npy_intp n, int type) {
    return (PyArrayObject *)PyArray_SimpleNew(1, &n, type);
}

// Is memory filled that would have whatever values it had? Then Python makes the tensors.
bool fills_new_memory = false;

PyObject *fill_new_memory(PyObject *, PyObject *whether) {
    int found = PyObject_IsTrue(whether);
    if (found < 0) return nullptr;
    fills_new_memory = found;
    Py_RETURN_NONE;
}

PyObject *empty(PyObject *, Args a, Py_ssize_t n) {
    return n == 2 && !fills_new_memory ? make(a[0], a[1], false) : not_mine();
}
PyObject *zeros(PyObject *, Args a, Py_ssize_t n) { return n == 2 ? make(a[0], a[1], true) : not_mine(); }

// ---- filled with a number -----------------------------------------------------------------------

// A number of Python's as a double, if it is exactly one.
bool as_double(PyObject *value, double &to) {
    if (PyFloat_CheckExact(value)) return to = PyFloat_AS_DOUBLE(value), true;
    if (!PyLong_Check(value)) return false;
    int overflow;
    long long whole = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow || whole > 1LL << 53 || whole < -(1LL << 53)) return false;
    return to = double(whole), true;
}

bool as_integer(PyObject *value, long long &to) {
    int overflow;
    if (!PyLong_Check(value)) return false;
    to = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

template <class T>
PyObject *filled(PyObject *array, T value) {
    T *to = (T *)PyArray_DATA((PyArrayObject *)array);
    std::fill(to, to + PyArray_SIZE((PyArrayObject *)array), value);
    return array;
}

template <class T>
PyObject *filled_integer(PyObject *shape, PyObject *type, PyObject *value) {
    long long v;
    if (!as_integer(value, v) || v < (long long)std::numeric_limits<T>::min() ||
        v > (long long)std::numeric_limits<T>::max())
        return not_mine();
    PyObject *array = make(shape, type, false);
    return array && PyArray_Check(array) ? filled<T>(array, T(v)) : array;
}

template <class T>
PyObject *filled_floating(PyObject *shape, PyObject *type, PyObject *value) {
    double v;
    if (!as_double(value, v) || (std::isfinite(v) && std::fabs(v) > std::numeric_limits<T>::max()))
        return not_mine();
    PyObject *array = make(shape, type, false);
    return array && PyArray_Check(array) ? filled<T>(array, T(v)) : array;
}

// A half is rounded from a float, as in PyTorch.
template <class T>
PyObject *filled_half(PyObject *shape, PyObject *type, PyObject *value, double largest) {
    double v;
    if (!as_double(value, v) || (std::isfinite(v) && std::fabs(v) > largest)) return not_mine();
    PyObject *array = make(shape, type, false);
    return array && PyArray_Check(array) ? filled<T>(array, Narrow<T, float>::from(float(v))) : array;
}

PyObject *full_of(PyObject *shape, PyObject *value, PyObject *type) {
    if (!PyArray_DescrCheck(type)) return not_mine();
    switch (dtype_of(((PyArray_Descr *)type)->type_num)) {
        case F2: return filled_half<Half>(shape, type, value, 65504);
        case BF: return filled_half<BFloat>(shape, type, value, 3.38953138925153547e38);
        default: break;
    }
    switch (((PyArray_Descr *)type)->type_num) {
        case NPY_FLOAT: return filled_floating<float>(shape, type, value);
        case NPY_DOUBLE: return filled_floating<double>(shape, type, value);
        case NPY_LONG: return filled_integer<npy_long>(shape, type, value);
        case NPY_INT: return filled_integer<npy_int>(shape, type, value);
        case NPY_SHORT: return filled_integer<npy_short>(shape, type, value);
        case NPY_BYTE: return filled_integer<npy_byte>(shape, type, value);
        case NPY_UBYTE: return filled_integer<npy_ubyte>(shape, type, value);
        case NPY_BOOL: {
            double v;
            if (!as_double(value, v)) return not_mine();
            PyObject *array = make(shape, type, false);
            return array && PyArray_Check(array) ? filled<npy_bool>(array, v != 0) : array;
        }
    }
    return not_mine();
}

PyObject *full(PyObject *, Args a, Py_ssize_t n) { return n == 3 ? full_of(a[0], a[1], a[2]) : not_mine(); }

PyObject *ones(PyObject *, Args a, Py_ssize_t n) {
    static PyObject *one = PyLong_FromLong(1);
    return n == 2 ? full_of(a[0], one, a[1]) : not_mine();
}

PyObject *scalar(PyObject *, Args a, Py_ssize_t n) {
    static PyObject *shape = PyTuple_New(0);
    return n == 2 ? full_of(shape, a[0], a[1]) : not_mine();
}

// ---- at equal steps -----------------------------------------------------------------------------

int type_num(PyObject *type) {
    return PyArray_DescrCheck(type) ? ((PyArray_Descr *)type)->type_num : -1;
}

// start + k · step as PyTorch's vectors of 32 bytes compute it: their first elements from `start`,
// the others from the first; those that do not fill two vectors, alone.
template <class T>
CLONES void steps(T *to, npy_intp n, double start, double step) {
    constexpr npy_intp lanes = 32 / sizeof(T);
    npy_intp whole = n - n % (2 * lanes);
    for (npy_intp k = 0; k < whole; k += lanes) {
        T first = T(std::fma(step, double(k), start));
        for (npy_intp i = 0; i < lanes; i++) to[k + i] = T(std::fma(step, double(i), double(first)));
    }
    for (npy_intp k = whole; k < n; k++) to[k] = T(std::fma(step, double(k), start));
}

// arange(start, end, step, type)
PyObject *arange(PyObject *, Args a, Py_ssize_t n) {
    if (n != 4) return not_mine();
    int type = type_num(a[3]);
    if (type == NPY_INT64) {
        long long start, end, step;
        if (!as_integer(a[0], start) || !as_integer(a[1], end) || !as_integer(a[2], step) || !step ||
            std::max(std::llabs(start), std::llabs(end)) > 1LL << 52 || std::llabs(step) > 1LL << 52 ||
            (end - start != 0 && (end > start) != (step > 0)))
            return not_mine();
        npy_intp count = npy_intp((end - start) / step + ((end - start) % step != 0));
        PyArrayObject *array = row(count, type);
        int64_t *to = array ? (int64_t *)PyArray_DATA(array) : nullptr;
        for (npy_intp k = 0; to && k < count; k++) to[k] = start + k * step;
        return (PyObject *)array;
    }
    double start, end, step;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || !as_double(a[0], start) ||
        !as_double(a[1], end) || !as_double(a[2], step) || !std::isfinite(start) ||
        !std::isfinite(end) || !std::isfinite(step) || step == 0 || (end - start) * step < 0)
        return not_mine();
    double count = std::ceil((end - start) / step);
    if (count > 1e12) return not_mine();
    PyArrayObject *array = row(npy_intp(count), type);
    if (!array) return nullptr;
    if (type == NPY_FLOAT) steps((float *)PyArray_DATA(array), npy_intp(count), start, step);
    else steps((double *)PyArray_DATA(array), npy_intp(count), start, step);
    return (PyObject *)array;
}

// `n` numbers: the first half counts from `start`, the second back from `end`, in the result's type.
template <class T>
CLONES void evenly(T *to, npy_intp n, T start, T end) {
    if (n == 1) {
        to[0] = start;
        return;
    }
    T step = (end - start) / T(n > 1 ? n - 1 : 1);
    npy_intp half = n / 2;
    for (npy_intp k = 0; k < half; k++)
        to[k] = T(std::fma(double(step), double(k), double(start)));
    for (npy_intp k = half; k < n; k++)
        to[k] = T(std::fma(-double(step), double(n - 1 - k), double(end)));
}

// The arguments (start, end, steps) that linspace and logspace share.
bool read_range(Args a, double &start, double &end, npy_intp &count) {
    long long n;
    if (!as_double(a[0], start) || !as_double(a[1], end) || !as_integer(a[2], n) || n < 0 ||
        n > 1LL << 40 || !std::isfinite(start) || !std::isfinite(end))
        return false;
    return count = npy_intp(n), true;
}

bool fits_float(double x) { return std::fabs(x) <= std::numeric_limits<float>::max(); }

// linspace(start, end, steps, type)
PyObject *linspace(PyObject *, Args a, Py_ssize_t n) {
    double start, end;
    npy_intp count;
    int type = n == 4 ? type_num(a[3]) : -1;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || !read_range(a, start, end, count) ||
        (type == NPY_FLOAT && !(fits_float(start) && fits_float(end))))
        return not_mine();
    PyArrayObject *array = row(count, type);
    if (!array || !count) return (PyObject *)array;
    if (type == NPY_FLOAT) evenly((float *)PyArray_DATA(array), count, float(start), float(end));
    else evenly((double *)PyArray_DATA(array), count, start, end);
    return (PyObject *)array;
}

// logspace(start, end, steps, base, type)
PyObject *logspace(PyObject *, Args a, Py_ssize_t n) {
    double start, end, base;
    npy_intp count;
    if (n != 5 || type_num(a[4]) != NPY_FLOAT || !read_range(a, start, end, count) ||
        !as_double(a[3], base) || count > 1 << 20)
        return not_mine();
    PyArrayObject *array = row(count, NPY_FLOAT);
    if (!array || !count) return (PyObject *)array;
    double *exponents = (double *)PyMem_Malloc(sizeof(double) * count);
    if (!exponents) return Py_DECREF(array), PyErr_NoMemory();
    evenly(exponents, count, start, end);
    float *to = (float *)PyArray_DATA(array);
    for (npy_intp k = 0; k < count; k++) to[k] = float(std::pow(base, exponents[k]));
    PyMem_Free(exponents);
    return (PyObject *)array;
}

// ---- matrices and indices -----------------------------------------------------------------------

// Is it a type that most of PyTorch's kernels know?
bool is_common(int type) {
    return type == NPY_BOOL || type == NPY_BYTE || type == NPY_UBYTE || type == NPY_SHORT ||
           type == NPY_INT || type == NPY_INT64 || type == NPY_FLOAT || type == NPY_DOUBLE ||
           type == NPY_CFLOAT || type == NPY_CDOUBLE;
}

// eye(n, m or None, type)
PyObject *eye(PyObject *, Args a, Py_ssize_t n) {
    static PyObject *one = PyLong_FromLong(1);
    long long rows, columns;
    if (n != 3 || !PyArray_DescrCheck(a[2]) || !as_integer(a[0], rows) || rows < 0) return not_mine();
    if (a[1] == Py_None) columns = rows;
    else if (!as_integer(a[1], columns)) return not_mine();
    if (columns < 0 || rows > 1 << 20 || columns > 1 << 20 || !is_common(type_num(a[2])))
        return not_mine();
    npy_intp dims[2] = {npy_intp(rows), npy_intp(columns)};
    Py_INCREF(a[2]);
    PyArrayObject *array = (PyArrayObject *)PyArray_Zeros(2, dims, (PyArray_Descr *)a[2], 0);
    if (!array || !rows || !columns) return (PyObject *)array;
    char *to = PyArray_BYTES(array);
    npy_intp size = PyArray_ITEMSIZE(array), step = size * (columns + 1);
    if (PyArray_SETITEM(array, to, one) < 0) return Py_DECREF(array), nullptr;
    for (npy_intp k = 1; k < std::min(rows, columns); k++) std::memcpy(to + k * step, to, size);
    return (PyObject *)array;
}

// The indices of a triangle of a matrix, row by row: first all rows, then all columns.
template <bool lower>
PyObject *triangle(PyObject *, Args a, Py_ssize_t n) {
    long long rows, columns, offset;
    if (n != 4 || type_num(a[3]) != NPY_INT64 || !as_integer(a[0], rows) ||
        !as_integer(a[1], columns) || !as_integer(a[2], offset) || rows < 0 || columns < 0 ||
        rows > 1 << 20 || columns > 1 << 20 || std::llabs(offset) > 1 << 21)
        return not_mine();
    auto from = [&](long long i) {
        return lower ? 0LL : std::min(columns, std::max(0LL, i + offset));
    };
    auto to = [&](long long i) {
        return lower ? std::min(columns, std::max(0LL, i + offset + 1)) : columns;
    };
    npy_intp count = 0;
    for (long long i = 0; i < rows; i++) count += npy_intp(to(i) - from(i));
    npy_intp dims[2] = {2, count};
    PyArrayObject *array = (PyArrayObject *)PyArray_SimpleNew(2, dims, NPY_INT64);
    if (!array) return nullptr;
    int64_t *first = (int64_t *)PyArray_DATA(array), *second = first + count;
    for (long long i = 0; i < rows; i++)
        for (long long j = from(i); j < to(i); j++) *first++ = i, *second++ = j;
    return (PyObject *)array;
}

// ---- with strides -------------------------------------------------------------------------------

bool read_numbers(PyObject *list, npy_intp *to, int n) {
    for (int d = 0; d < n; d++) {
        to[d] = PyLong_AsSsize_t(PySequence_Fast_GET_ITEM(list, d));
        if (to[d] < 0) return false;
    }
    return true;
}

PyObject *strided(const npy_intp *dims, const npy_intp *strides, int n, PyObject *type) {
    npy_intp extent = 1, size = PyDataType_ELSIZE((PyArray_Descr *)type), bytes[NPY_MAXDIMS];
    double bound = 1;
    for (int d = 0; d < n; d++) {
        bound += double(dims[d]) * double(strides[d]);
        if (bound > 1e12) return not_mine();
        extent = dims[d] && extent ? extent + (dims[d] - 1) * strides[d] : 0;
        bytes[d] = strides[d] * size;
    }
    Py_INCREF(type);
    PyObject *memory = PyArray_Empty(1, &extent, (PyArray_Descr *)type, 0);
    if (!memory) return nullptr;
    Py_INCREF(type);
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)type, n, dims, bytes,
                                           PyArray_DATA((PyArrayObject *)memory),
                                           NPY_ARRAY_WRITEABLE, nullptr);
    if (!array || PyArray_SetBaseObject((PyArrayObject *)array, memory) < 0) {
        if (!array) Py_DECREF(memory);
        Py_XDECREF(array);
        return nullptr;
    }
    return array;
}

bool is_list(PyObject *x) { return PyTuple_CheckExact(x) || PyList_CheckExact(x); }

// empty_strided(size, stride, type)
PyObject *empty_strided(PyObject *, Args a, Py_ssize_t n) {
    if (fills_new_memory) return not_mine();
    npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    if (n != 3 || !is_list(a[0]) || !is_list(a[1]) || !PyArray_DescrCheck(a[2])) return not_mine();
    Py_ssize_t nd = PySequence_Fast_GET_SIZE(a[0]);
    if (nd != PySequence_Fast_GET_SIZE(a[1]) || nd > NPY_MAXDIMS ||
        !read_numbers(a[0], dims, int(nd)) || !read_numbers(a[1], strides, int(nd)))
        return not_mine();
    return strided(dims, strides, int(nd), a[2]);
}

// empty_permuted(size, physical_layout, type)
PyObject *empty_permuted(PyObject *, Args a, Py_ssize_t n) {
    if (fills_new_memory) return not_mine();
    npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS], order[NPY_MAXDIMS], extent = 1;
    if (n != 3 || !is_list(a[0]) || !is_list(a[1]) || !PyArray_DescrCheck(a[2])) return not_mine();
    Py_ssize_t nd = PySequence_Fast_GET_SIZE(a[0]);
    if (nd != PySequence_Fast_GET_SIZE(a[1]) || nd > NPY_MAXDIMS ||
        !read_numbers(a[0], dims, int(nd)) || !read_numbers(a[1], order, int(nd)))
        return not_mine();
    uint64_t seen = 0;
    for (Py_ssize_t i = nd - 1; i >= 0; i--) {
        if (order[i] >= nd || seen >> order[i] & 1 || extent > npy_intp(1) << 40) return not_mine();
        seen |= uint64_t(1) << order[i];
        strides[order[i]] = extent;
        extent *= std::max(dims[order[i]], npy_intp(1));
    }
    return strided(dims, strides, int(nd), a[2]);
}

#define FAST(name) {"make_" #name, (PyCFunction)(void (*)())name, METH_FASTCALL, nullptr}
PyMethodDef methods[] = {
    FAST(empty), FAST(zeros), FAST(ones), FAST(full), FAST(scalar), FAST(arange), FAST(linspace),
    FAST(logspace), FAST(eye), FAST(empty_strided), FAST(empty_permuted),
    {"fill_new_memory", fill_new_memory, METH_O, nullptr},
    {"make_tril_indices", (PyCFunction)(void (*)())triangle<true>, METH_FASTCALL, nullptr},
    {"make_triu_indices", (PyCFunction)(void (*)())triangle<false>, METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int register_creation(PyObject *module) { return PyModule_AddFunctions(module, methods); }
