// Copies of an array's elements in other places: turned, repeated, padded, on a diagonal, joined.
#include "arrays.h"
#include "kernels/moving/strided.h"

#include "kernels/checked/checked.h"
#include "kernels/pointwise/kernel.h"
#include "parallel.h"

#include <algorithm>
#include <vector>

namespace moving {

static bool is_by_rows(PyObject *x) {
    return is_movable(x) && PyArray_IS_C_CONTIGUOUS((PyArrayObject *)x);
}

// Has it elements, or the strides of a new array without any, which the twins keep else?
static bool is_usual(PyArrayObject *x) { return PyArray_SIZE(x) || is_row_major(x); }

static PyObject *as_object(PyArrayObject *x) { return (PyObject *)x; }

// flip(x, dims)
static PyObject *flip(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    npy_intp dims[NPY_MAXDIMS];
    if (names || n != 2 || !is_by_rows(args[0]) || !is_usual((PyArrayObject *)args[0])) return declined();
    PyArrayObject *x = (PyArrayObject *)args[0];
    int count = read_ints(args[1], dims);
    if (count < 0) return declined();
    PyArrayObject *r = empty(x, PyArray_NDIM(x), PyArray_DIMS(x));
    if (!r || !PyArray_SIZE(x)) return as_object(r);
    Range range;
    const char *from = PyArray_BYTES(x);
    for (int d = 0; d < PyArray_NDIM(x); d++) {
        npy_intp stride = PyArray_STRIDE(x, d);
        bool turned = std::find(dims, dims + count, d) != dims + count;
        if (turned) from += (PyArray_DIM(x, d) - 1) * stride;
        range.add(PyArray_DIM(x, d), PyArray_STRIDE(r, d), turned ? -stride : stride);
    }
    copy(range, PyArray_BYTES(r), from, PyArray_ITEMSIZE(x));
    return as_object(r);
}

// roll(x, shifts, dims): each block of slices that stay together is moved at once.
static PyObject *roll(PyObject *const *args, Py_ssize_t nargs, PyObject *names) {
    npy_intp shifts[NPY_MAXDIMS], dims[NPY_MAXDIMS], by[NPY_MAXDIMS] = {};
    if (names || nargs != 3 || !is_movable(args[0]) || !is_usual((PyArrayObject *)args[0])) return declined();
    PyArrayObject *x = (PyArrayObject *)args[0];
    int nd = PyArray_NDIM(x), count = read_ints(args[1], shifts), given = read_ints(args[2], dims);
    if (count < 1 || given < 0 || (given ? given != count : count != 1)) return misfit();
    bool flat = !given && nd != 1;
    if (nd > 8 || (flat && !PyArray_IS_C_CONTIGUOUS(x))) return declined();
    for (int i = 0; i < given; i++) {
        if (dims[i] < 0) dims[i] += nd;
        if (dims[i] < 0 || dims[i] >= nd) return misfit();
    }
    PyArrayObject *r = empty(x, nd, PyArray_DIMS(x));
    npy_intp n = PyArray_SIZE(x), item = PyArray_ITEMSIZE(x);
    if (!r || !n) return as_object(r);
    if (flat) {
        npy_intp shift = (shifts[0] % n + n) % n * item;
        std::memcpy(PyArray_BYTES(r) + shift, PyArray_BYTES(x), n * item - shift);
        std::memcpy(PyArray_BYTES(r), PyArray_BYTES(x) + n * item - shift, shift);
        return as_object(r);
    }
    if (!given) dims[0] = 0;
    for (int i = 0; i < count; i++) {
        npy_intp size = PyArray_DIM(x, int(dims[i]));
        by[dims[i]] = ((by[dims[i]] + shifts[i]) % size + size) % size;
    }
    for (int block = 0; block < 1 << nd; block++) {
        Range range;
        npy_intp to = 0, from = 0;
        bool any = true;
        for (int d = 0; d < nd; d++) {  // what is moved on, or what comes in at the beginning
            npy_intp size = PyArray_DIM(x, d);
            bool second = block >> d & 1;
            npy_intp length = second ? by[d] : size - by[d];
            any &= length > 0;
            range.add(length, PyArray_STRIDE(r, d), PyArray_STRIDE(x, d));
            to += (second ? 0 : by[d]) * PyArray_STRIDE(r, d);
            from += (second ? size - by[d] : 0) * PyArray_STRIDE(x, d);
        }
        if (any) copy(range, PyArray_BYTES(r) + to, PyArray_BYTES(x) + from, PyArray_ITEMSIZE(x));
    }
    return as_object(r);
}

// triangle(x, diagonal, upper)
static PyObject *triangle(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (names || n != 3 || !is_movable(args[0]) || !PyLong_Check(args[1])) return declined();
    PyArrayObject *x = (PyArrayObject *)args[0];
    int overflow, nd = PyArray_NDIM(x);
    long long diagonal = PyLong_AsLongLongAndOverflow(args[1], &overflow);
    if (overflow || nd < 2) return misfit();
    bool upper = args[2] == Py_True;
    PyArrayObject *r = to_update(x);
    if (!r) return nullptr;
    npy_intp rows = PyArray_DIM(r, nd - 2), columns = PyArray_DIM(r, nd - 1);
    npy_intp item = PyArray_ITEMSIZE(r), matrix = rows * columns;
    npy_intp matrices = matrix ? PyArray_SIZE(r) / matrix : 0;
    for (npy_intp m = 0; m < matrices; m++)
        for (npy_intp i = 0; i < rows; i++) {
            char *row = PyArray_BYTES(r) + (m * matrix + i * columns) * item;
            npy_intp at = npy_intp(std::clamp<long long>(i + diagonal + !upper, 0, columns));
            if (upper) std::memset(row, 0, at * item);
            else std::memset(row + at * item, 0, (columns - at) * item);
        }
    return as_object(r);
}

// repeat(x, repeats)
static PyObject *repeat(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    npy_intp repeats[NPY_MAXDIMS], shape[NPY_MAXDIMS];
    if (names || n != 2 || !is_movable(args[0])) return declined();
    PyArrayObject *x = (PyArrayObject *)args[0];
    int count = read_ints(args[1], repeats), extra = count - PyArray_NDIM(x);
    if (extra < 0 || count > NPY_MAXDIMS / 2) return misfit();
    for (int d = 0; d < count; d++) {
        if (repeats[d] < 0) return misfit();
        shape[d] = repeats[d] * (d < extra ? 1 : PyArray_DIM(x, d - extra));
    }
    PyArrayObject *r = empty(x, count, shape);
    if (!r || !PyArray_SIZE(r)) return as_object(r);
    Range range;
    for (int d = 0; d < count; d++) {
        npy_intp own = d < extra ? 1 : PyArray_DIM(x, d - extra);
        range.add(repeats[d], PyArray_STRIDE(r, d) * own, 0);
        range.add(own, PyArray_STRIDE(r, d), d < extra ? 0 : PyArray_STRIDE(x, d - extra));
    }
    copy(range, PyArray_BYTES(r), PyArray_BYTES(x), PyArray_ITEMSIZE(x));
    return as_object(r);
}

// Copies `x` onto the diagonal of two dimensions of `r`, which x has as its last; false: no fit.
static bool write_diagonal(PyArrayObject *r, PyArrayObject *x, npy_intp offset, npy_intp dim1,
                           npy_intp dim2) {
    int nd = PyArray_NDIM(r), k = 0;
    if (dim1 == dim2 || std::min(dim1, dim2) < 0 || std::max(dim1, dim2) >= nd ||
        PyArray_NDIM(x) != nd - 1)
        return false;
    npy_intp rows = PyArray_DIM(r, int(dim1)), columns = PyArray_DIM(r, int(dim2));
    npy_intp size = offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns);
    Range range;
    for (int d = 0; d < nd; d++) {
        if (d == dim1 || d == dim2) continue;
        if (PyArray_DIM(x, k) != PyArray_DIM(r, d)) return false;
        range.add(PyArray_DIM(r, d), PyArray_STRIDE(r, d), PyArray_STRIDE(x, k));
        k++;
    }
    size = std::max<npy_intp>(size, 0);
    if (PyArray_DIM(x, k) != size) return false;
    npy_intp down = PyArray_STRIDE(r, int(dim1)), right = PyArray_STRIDE(r, int(dim2));
    range.add(size, down + right, PyArray_STRIDE(x, k));
    if (size)
        copy(range, PyArray_BYTES(r) + (offset >= 0 ? offset * right : -offset * down),
             PyArray_BYTES(x), PyArray_ITEMSIZE(x));
    return true;
}

static bool take_ints(PyObject *const *args, int n, npy_intp *to) {
    for (int i = 0; i < n; i++) {
        if (!PyLong_Check(args[i])) return false;
        to[i] = PyLong_AsSsize_t(args[i]);
        if (to[i] == -1 && PyErr_Occurred()) return PyErr_Clear(), false;
    }
    return true;
}

// Copies `x` to the slices start, start + step … of `r` along `dim`; without `dim` if it has one less
// dimension. False: no fit.
static bool write_slices(PyArrayObject *r, PyArrayObject *x, npy_intp dim, npy_intp start,
                         npy_intp step) {
    int nd = PyArray_NDIM(r), k = 0;
    bool one = PyArray_NDIM(x) == nd - 1;
    if ((!one && PyArray_NDIM(x) != nd) || dim < 0 || dim >= nd) return false;
    npy_intp size = PyArray_DIM(r, int(dim));
    npy_intp count = one ? 1 : PyArray_DIM(x, int(dim));
    if (count && (start < 0 || start + (count - 1) * step >= size)) return false;
    Range range;
    for (int d = 0; d < nd; d++) {
        npy_intp stride = PyArray_STRIDE(r, d);
        if (d == dim && one) continue;
        if (d != dim && PyArray_DIM(x, k) != PyArray_DIM(r, d)) return false;
        range.add(PyArray_DIM(x, k), d == dim ? stride * step : stride, PyArray_STRIDE(x, k));
        k++;
    }
    if (PyArray_SIZE(x))
        copy(range, PyArray_BYTES(r) + start * PyArray_STRIDE(r, int(dim)), PyArray_BYTES(x),
             PyArray_ITEMSIZE(x));
    return true;
}

// Writes an array into part of another, which three numbers name; false: it does not fit there.
using Writer = bool (*)(PyArrayObject *r, PyArrayObject *x, npy_intp, npy_intp, npy_intp);

// (x, shape, …): zeros of that shape with x as the part.
template <Writer write>
static PyObject *embedded(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    npy_intp shape[NPY_MAXDIMS], a[3];
    if (names || n != 5 || !is_movable(args[0]) || !take_ints(args + 2, 3, a)) return declined();
    PyArrayObject *x = (PyArrayObject *)args[0];
    int nd = read_ints(args[1], shape);
    if (nd < 1) return declined();
    PyArrayObject *r = zeros(x, nd, shape);
    if (!r || write(r, x, a[0], a[1], a[2])) return as_object(r);
    Py_DECREF(r);
    return declined();
}

// (x, src, …): a copy of x with src as the part.
template <Writer write>
static PyObject *scattered(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    npy_intp a[3];
    if (names || n != 5 || !is_movable(args[0]) || !is_movable(args[1]) ||
        !take_ints(args + 2, 3, a))
        return declined();
    PyArrayObject *x = (PyArrayObject *)args[0], *src = (PyArrayObject *)args[1];
    if (PyArray_DESCR(x) != PyArray_DESCR(src)) return misfit();
    PyArrayObject *r = copied(x);
    if (!r || write(r, src, a[0], a[1], a[2])) return as_object(r);
    Py_DECREF(r);
    return misfit();
}

// ---- joining ------------------------------------------------------------------------------------

// The arrays of a list, of one type; -1: they are not.
static int read_arrays(PyObject *list, PyArrayObject **to, int most) {
    if (!PyList_CheckExact(list) || PyList_GET_SIZE(list) > most || !PyList_GET_SIZE(list)) return -1;
    int n = int(PyList_GET_SIZE(list));
    for (int i = 0; i < n; i++) {
        if (!is_movable(PyList_GET_ITEM(list, i))) return -1;
        to[i] = (PyArrayObject *)PyList_GET_ITEM(list, i);
        if (PyArray_DESCR(to[i]) != PyArray_DESCR(to[0])) return -1;
    }
    return n;
}

constexpr int MANY = 256;

// stack(arrays, dim)
static PyObject *stack(PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyArrayObject *arrays[MANY];
    npy_intp dim, shape[NPY_MAXDIMS];
    if (names || count != 2 || !PyList_CheckExact(args[0]) || !take_ints(args + 1, 1, &dim))
        return declined();
    Py_ssize_t n = PyList_GET_SIZE(args[0]);
    PyArrayObject *first = n && PyArray_Check(PyList_GET_ITEM(args[0], 0))
                               ? (PyArrayObject *)PyList_GET_ITEM(args[0], 0) : nullptr;
    int nd = first ? PyArray_NDIM(first) : 0;
    if (!first || dim < 0 || dim > nd) return misfit();
    if (nd > 3 && dim < nd && !PyArray_IS_C_CONTIGUOUS(first)) return declined();  // as of `cat`
    for (Py_ssize_t i = 1; i < n; i++) {
        PyArrayObject *x = (PyArrayObject *)PyList_GET_ITEM(args[0], i);
        if (!PyArray_Check(PyList_GET_ITEM(args[0], i)) || PyArray_NDIM(x) != nd ||
            !std::equal(PyArray_DIMS(first), PyArray_DIMS(first) + nd, PyArray_DIMS(x)))
            return misfit();
    }
    if (read_arrays(args[0], arrays, MANY) < 0) return declined();
    for (int d = 0, k = 0; d <= nd; d++) shape[d] = d == dim ? n : PyArray_DIM(arrays[0], k++);
    PyArrayObject *r = empty(arrays[0], nd + 1, shape);
    for (int i = 0; r && i < n; i++) {
        Range range;
        for (int d = 0; d < nd; d++)
            range.add(PyArray_DIM(arrays[i], d), PyArray_STRIDE(r, d + (d >= dim)),
                      PyArray_STRIDE(arrays[i], d));
        copy(range, PyArray_BYTES(r) + i * PyArray_STRIDE(r, int(dim)), PyArray_BYTES(arrays[i]),
             PyArray_ITEMSIZE(r));
    }
    return as_object(r);
}

// cat(arrays, dim): vectors of length 0 count for nothing.
static PyObject *cat(PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyArrayObject *arrays[MANY], *first = nullptr;
    npy_intp dim, shape[NPY_MAXDIMS];
    if (names || count != 2 || !PyList_CheckExact(args[0]) || !take_ints(args + 1, 1, &dim))
        return declined();
    if (!PyList_GET_SIZE(args[0])) return misfit();
    int given = read_arrays(args[0], arrays, MANY), n = 0, nd = 0;
    bool by_rows = true, channels_last = true;  // where all have them so, the result has
    for (int i = 0; i < given; i++) {
        PyArrayObject *x = arrays[i];
        if (PyArray_NDIM(x) == 1 && !PyArray_SIZE(x)) continue;
        if (!first) {
            first = x, nd = PyArray_NDIM(x);
            if (dim < 0 || dim >= nd) return misfit();
            std::copy_n(PyArray_DIMS(x), nd, shape);
            shape[dim] = 0;
        }
        if (PyArray_NDIM(x) != nd) return misfit();
        for (int d = 0; d < nd; d++)
            if (d != dim && PyArray_DIM(x, d) != shape[d]) return misfit();
        by_rows &= PyArray_IS_C_CONTIGUOUS(x) != 0;
        channels_last &= checked::has_channels_last(x);
        shape[dim] += PyArray_DIM(x, int(dim));
        arrays[n++] = x;
    }
    npy_intp size = 1;
    for (int d = 0; d < nd; d++) size *= shape[d];
    if (!first || size > 1 << 18) return declined();  // of more, several threads copy
    channels_last &= !by_rows;
    PyArrayObject *r;
    if (channels_last) {
        Py_INCREF(PyArray_DESCR(first));
        r = (PyArrayObject *)new_channels_last(PyArray_DESCR(first), nd, shape);
    } else {
        r = empty(first, nd, shape);
    }
    char *to = r ? PyArray_BYTES(r) : nullptr;
    for (int i = 0; r && i < n; i++) {
        Range range;
        for (int d = 0; d < nd; d++)
            range.add(PyArray_DIM(arrays[i], d), PyArray_STRIDE(r, d), PyArray_STRIDE(arrays[i], d));
        copy(range, to, PyArray_BYTES(arrays[i]), PyArray_ITEMSIZE(r));
        to += PyArray_DIM(arrays[i], int(dim)) * PyArray_STRIDE(r, int(dim));
    }
    return as_object(r);
}

template <class T>
static void sum_windows(PyArrayObject *r, PyArrayObject *x, int dim, npy_intp step) {
    int nd = PyArray_NDIM(x);
    npy_intp at[NPY_MAXDIMS] = {}, strides[NPY_MAXDIMS];
    for (int d = 0; d < nd - 1; d++) strides[d] = PyArray_STRIDE(r, d) * (d == dim ? step : 1);
    strides[nd - 1] = PyArray_STRIDE(r, dim);
    char *to = PyArray_BYTES(r);
    const char *from = PyArray_BYTES(x);
    for (;;) {
        *(T *)to += *(const T *)from;
        int d = nd - 1;
        for (; d >= 0; d--) {
            to += strides[d], from += PyArray_STRIDE(x, d);
            if (++at[d] < PyArray_DIM(x, d)) break;
            to -= strides[d] * at[d], from -= PyArray_STRIDE(x, d) * at[d];
            at[d] = 0;
        }
        if (d < 0) return;
    }
}

// summed_windows(x, shape, dim, size, step): zeros of that shape with windows, the last dimension of
// x, added where they were taken.
static PyObject *summed_windows(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    npy_intp shape[NPY_MAXDIMS], a[3];
    if (names || n != 5 || !is_movable(args[0]) || !take_ints(args + 2, 3, a)) return declined();
    PyArrayObject *x = (PyArrayObject *)args[0];
    int nd = read_ints(args[1], shape), dim = int(a[0]);
    DType type = dtype_of(PyArray_TYPE(x));
    if (nd < 1 || PyArray_NDIM(x) != nd + 1 || dim < 0 || dim >= nd || (type != F4 && type != F8))
        return declined();
    npy_intp count = PyArray_DIM(x, dim), size = PyArray_DIM(x, nd);
    for (int d = 0; d < nd; d++)
        if (d != dim && PyArray_DIM(x, d) != shape[d]) return declined();
    if (size != a[1] || a[2] < 1 || (count && (count - 1) * a[2] + size > shape[dim])) return declined();
    PyArrayObject *r = zeros(x, nd, shape);
    if (!r || !PyArray_SIZE(x)) return as_object(r);
    if (type == F4) sum_windows<float>(r, x, dim, a[2]);
    else sum_windows<double>(r, x, dim, a[2]);
    return as_object(r);
}

// block_diag(arrays): matrices, vectors (rows) and numbers.
static PyObject *block_diag(PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyArrayObject *arrays[MANY];
    int n = names || count != 1 ? -1 : read_arrays(args[0], arrays, MANY);
    if (n < 0) return declined();
    npy_intp shape[2] = {0, 0}, item = PyArray_ITEMSIZE(arrays[0]);
    auto extent = [&](int i, int d) {
        int at = d - (2 - PyArray_NDIM(arrays[i]));
        return at < 0 ? npy_intp(1) : PyArray_DIM(arrays[i], at);
    };
    for (int i = 0; i < n; i++) {
        if (PyArray_NDIM(arrays[i]) > 2) return declined();
        shape[0] += extent(i, 0), shape[1] += extent(i, 1);
    }
    PyArrayObject *r = zeros(arrays[0], 2, shape);
    char *to = r ? PyArray_BYTES(r) : nullptr;
    for (int i = 0; r && i < n; i++) {
        Range range;
        for (int d = 0; d < 2; d++) {
            int at = d - (2 - PyArray_NDIM(arrays[i]));
            range.add(extent(i, d), PyArray_STRIDE(r, d), at < 0 ? 0 : PyArray_STRIDE(arrays[i], at));
        }
        copy(range, to, PyArray_BYTES(arrays[i]), item);
        to += extent(i, 0) * PyArray_STRIDE(r, 0) + extent(i, 1) * item;
    }
    return as_object(r);
}

// ---- padding ------------------------------------------------------------------------------------

// Padding before and after each dimension, from a tuple that begins with the last one.
static bool read_sides(PyObject *pad, int nd, npy_intp (*sides)[2]) {
    npy_intp given[NPY_MAXDIMS];
    int n = read_ints(pad, given);
    if (n < 0 || n % 2 || n > 2 * nd) return false;
    for (int d = 0; d < nd; d++) sides[d][0] = sides[d][1] = 0;
    for (int i = 0; i < n / 2; i++)
        sides[nd - 1 - i][0] = given[2 * i], sides[nd - 1 - i][1] = given[2 * i + 1];
    return true;
}

// A number as an element of the type of `like`; false: the twin converts it.
static bool read_element(PyObject *value, PyArrayObject *like, char *to) {
    double number;
    DType type = dtype_of(PyArray_TYPE(like));
    if (PyFloat_CheckExact(value)) number = PyFloat_AS_DOUBLE(value);
    else if (PyLong_CheckExact(value)) number = PyLong_AsDouble(value);
    else return false;
    if (number == 0 && !std::signbit(number) && PyArray_ITEMSIZE(like) <= 16) {
        std::memset(to, 0, PyArray_ITEMSIZE(like));
        return true;
    }
    if (type == F4) {
        float element = float(number);
        std::memcpy(to, &element, 4);
    } else if (type == F8) {
        std::memcpy(to, &number, 8);
    } else {
        return PyErr_Clear(), false;
    }
    return !PyErr_Occurred() || (PyErr_Clear(), false);
}

// constant_pad(x, pad, value)
static PyObject *constant_pad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    npy_intp sides[NPY_MAXDIMS][2], shape[NPY_MAXDIMS];
    alignas(16) char value[16];
    if (names || n != 3 || !is_by_rows(args[0])) return declined();
    PyArrayObject *x = (PyArrayObject *)args[0];
    int nd = PyArray_NDIM(x);
    if (!read_sides(args[1], nd, sides)) return misfit();
    for (int d = 0; d < nd; d++)
        if (PyArray_DIM(x, d) + std::min<npy_intp>(sides[d][0], 0) + std::min<npy_intp>(sides[d][1], 0) < 0)
            return misfit();
    if (!read_element(args[2], x, value)) return declined();
    npy_intp to = 0, from = 0;
    Range range;
    for (int d = 0; d < nd; d++) {
        npy_intp before = sides[d][0], after = sides[d][1];
        shape[d] = PyArray_DIM(x, d) + before + after;
        npy_intp kept = PyArray_DIM(x, d) + std::min<npy_intp>(before, 0) + std::min<npy_intp>(after, 0);
        if (kept < 0 || shape[d] < 0) return declined();
        range.add(kept, 0, PyArray_STRIDE(x, d));
    }
    PyArrayObject *r = empty(x, nd, shape);
    if (!r || !PyArray_SIZE(r)) return as_object(r);
    Range whole;
    whole.add(PyArray_SIZE(r), PyArray_ITEMSIZE(r), 0);
    fill(whole, PyArray_BYTES(r), value, PyArray_ITEMSIZE(r));
    for (int d = 0; d < nd; d++) {
        range.to[d] = PyArray_STRIDE(r, d);
        to += std::max<npy_intp>(sides[d][0], 0) * PyArray_STRIDE(r, d);
        from += std::max<npy_intp>(-sides[d][0], 0) * PyArray_STRIDE(x, d);
    }
    copy(range, PyArray_BYTES(r) + to, PyArray_BYTES(x) + from, PyArray_ITEMSIZE(x));
    return as_object(r);
}

// Which element of a dimension of n stands at each place of the padded one.
static void read_sources(char mode, npy_intp n, const npy_intp *side, npy_intp step,
                         std::vector<npy_intp> &to) {
    npy_intp before = side[0], after = side[1], length = n + before + after;
    npy_intp first = std::max<npy_intp>(-before, 0);
    npy_intp left = std::max<npy_intp>(n + std::min<npy_intp>(before, 0) + std::min<npy_intp>(after, 0), 1);
    for (npy_intp i = 0; i < length; i++) {
        npy_intp at = i - before;
        if (mode == 'c') at = ((i - std::max<npy_intp>(before, 0)) % left + left) % left + first;
        else if (mode == 'e') at = std::clamp<npy_intp>(at, 0, n - 1);
        else at = std::abs(at), at = at >= n ? 2 * (n - 1) - at : at;
        to.push_back(at * step);
    }
}

// A row from these places, of which those from `first` to `last` lie one after the other.
template <class T>
static void gather(const std::vector<npy_intp> &sources, npy_intp first, npy_intp last, const char *from, T *to) {
    npy_intp n = npy_intp(sources.size());
    for (npy_intp i = 0; i < first; i++) std::memcpy(to + i, from + sources[i], sizeof(T));
    std::memcpy(to + first, from + sources[first], (last - first) * sizeof(T));
    for (npy_intp i = last; i < n; i++) std::memcpy(to + i, from + sources[i], sizeof(T));
}

// mirror_pad(x, pad, mode): "reflect", "replicate" or "circular".
PyObject *mirror_pad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    npy_intp sides[NPY_MAXDIMS][2], shape[NPY_MAXDIMS];
    if (names || n != 3 || !is_by_rows(args[0]) || !PyUnicode_Check(args[2])) return declined();
    PyArrayObject *x = (PyArrayObject *)args[0];
    int nd = PyArray_NDIM(x);
    if (!nd || nd > 6 || !PyArray_SIZE(x) || !read_sides(args[1], nd, sides)) return declined();
    const char *name = PyUnicode_AsUTF8(args[2]);
    char mode = name[0] == 'c' ? 'c' : name[2] == 'p' ? 'e' : 'r';
    std::vector<npy_intp> sources[6];
    for (int d = 0; d < nd; d++) {
        shape[d] = PyArray_DIM(x, d) + sides[d][0] + sides[d][1];
        if (shape[d] < 0) return declined();
        read_sources(mode, PyArray_DIM(x, d), sides[d], PyArray_STRIDE(x, d), sources[d]);
    }
    PyArrayObject *r = empty(x, nd, shape);
    if (!r || !PyArray_SIZE(r)) return as_object(r);
    const std::vector<npy_intp> &row = sources[nd - 1];
    npy_intp width = npy_intp(row.size()), first = std::clamp<npy_intp>(sides[nd - 1][0], 0, width - 1);
    npy_intp last = first + 1;
    while (last < width && row[last] == row[last - 1] + PyArray_ITEMSIZE(x)) last++;
    bool known = with_size(PyArray_ITEMSIZE(x), [&](auto type) {
        using T = decltype(type);
        parallel_for(PyArray_SIZE(r) / width, PARALLEL_FROM / 2 / width + 1, [&](int64_t begin, int64_t end) {
            for (npy_intp line = begin; line < end; line++) {
                npy_intp offset = 0, rest = line;
                for (int d = nd - 2; d >= 0; d--) {
                    npy_intp n = npy_intp(sources[d].size());
                    offset += sources[d][rest % n], rest /= n;
                }
                gather(row, first, last, PyArray_BYTES(x) + offset, (T *)PyArray_DATA(r) + line * width);
            }
        }, 1);
    });
    if (known) return as_object(r);
    Py_DECREF(r);
    return declined();
}

}  // namespace moving

int register_rearranging(PyObject *module) {
    using namespace moving;
    return make_functions(module, {{"flip", flip}, {"roll", roll}, {"triangle", triangle},
                                   {"repeat", repeat},
                                   {"embedded_diagonal", embedded<write_diagonal>},
                                   {"diagonal_scatter", scattered<write_diagonal>},
                                   {"embedded_slices", embedded<write_slices>},
                                   {"scattered_slices", scattered<write_slices>},
                                   {"stack", moving::stack}, {"cat", cat},
                                   {"summed_windows", summed_windows}, {"block_diag", block_diag},
                                   {"constant_pad", constant_pad}, {"mirror_pad", mirror_pad}});
}
