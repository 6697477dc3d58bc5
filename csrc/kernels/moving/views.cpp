// Views of arrays for ops that are declared with canonical arguments. What does not fit raises
// Misfit.
#include "arrays.h"
#include "kernels/moving/strided.h"

#include "kernels/pointwise/kernel.h"

#include <algorithm>

namespace moving {

struct View {
    PyArrayObject *array;
    int nd = 0;
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS], offset = 0;

    explicit View(PyArrayObject *array) : array(array) { settle(array); }
    void add(npy_intp n, npy_intp stride) { shape[nd] = n, strides[nd++] = stride; }
    void add(int dim) { add(PyArray_DIM(array, dim), PyArray_STRIDE(array, dim)); }
    PyObject *make(int type = -1) const {  // of the array's own type, if no other is said
        PyArray_Descr *descr = PyArray_DESCR(array);
        if (type >= 0) descr = PyArray_DescrFromType(type);
        else Py_INCREF(descr);
        PyObject *view = PyArray_NewFromDescr(
            &PyArray_Type, descr, nd, const_cast<npy_intp *>(shape),
            const_cast<npy_intp *>(strides), PyArray_BYTES(array) + offset,
            PyArray_FLAGS(array) & NPY_ARRAY_WRITEABLE, nullptr);
        if (!view) return nullptr;
        Py_INCREF(array);
        if (PyArray_SetBaseObject((PyArrayObject *)view, (PyObject *)array) < 0) Py_CLEAR(view);
        return view;
    }
};

// The array and up to five ints of a call; false: other arguments, or no dimension to speak of.
static bool read(PyObject *const *args, Py_ssize_t n, PyObject *names, Py_ssize_t count,
                 PyArrayObject *&x, npy_intp *to) {
    if (names || n != count || !PyArray_CheckExact(args[0])) return false;
    x = (PyArrayObject *)args[0];
    if (PyArray_NDIM(x) > NPY_MAXDIMS / 2) return false;
    for (Py_ssize_t i = 1; i < n; i++) {
        if (!PyLong_Check(args[i])) return false;
        to[i - 1] = PyLong_AsSsize_t(args[i]);
        if (to[i - 1] == -1 && PyErr_Occurred()) return PyErr_Clear(), false;
    }
    return true;
}

// squeeze(x, dim): without dimensions of one: all, or those that one number or a tuple names.
static PyObject *squeeze(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (names || n != 2 || !PyArray_CheckExact(args[0])) return misfit();
    PyArrayObject *x = (PyArrayObject *)args[0];
    npy_intp dims[NPY_MAXDIMS];
    int count = 1;
    bool all = args[1] == Py_None;
    if (PyLong_Check(args[1])) dims[0] = PyLong_AsSsize_t(args[1]);
    else if (!all) count = read_ints(args[1], dims);
    if (count < 0) return misfit();
    View view(x);
    for (int d = 0; d < PyArray_NDIM(x); d++) {
        bool named = all || std::find(dims, dims + count, d) != dims + count;
        if (!named || PyArray_DIM(x, d) != 1) view.add(d);
    }
    return view.make();
}

static PyObject *t(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyArrayObject *x;
    if (!read(args, n, names, 1, x, nullptr) || PyArray_NDIM(x) > 2) return misfit();
    View view(x);
    for (int d = PyArray_NDIM(x) - 1; d >= 0; d--) view.add(d);
    return view.make();
}

// slices(x, dim, start, length): some slices next to each other.
static PyObject *slices(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyArrayObject *x;
    npy_intp a[3];
    if (!read(args, n, names, 4, x, a) || a[0] < 0 || a[0] >= PyArray_NDIM(x)) return misfit();
    npy_intp size = PyArray_DIM(x, int(a[0])), start = a[1], length = a[2];
    if (start < -size || start > size || length < 0) return misfit();
    if (start < 0) start += size;
    if (length > size - start) return misfit();
    View view(x);
    for (int d = 0; d < PyArray_NDIM(x); d++) view.add(d);
    view.shape[a[0]] = length;
    view.offset = start * PyArray_STRIDE(x, int(a[0]));
    return view.make();
}

// A place in a dimension of n, which may be counted from the end; `other` if there is none. False: no
// number.
static bool read_place(PyObject *value, npy_intp n, npy_intp other, npy_intp &to) {
    to = other;
    if (value == Py_None) return true;
    if (!PyLong_Check(value)) return false;
    int overflow;
    long long place = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) place = overflow < 0 ? -n : n;
    to = std::clamp<long long>(place < 0 ? place + n : place, 0, n);
    return true;
}

// slice(x, dim, start, end, step)
static PyObject *slice(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (names || n != 5 || !PyArray_CheckExact(args[0]) || !PyLong_Check(args[1]) ||
        !PyLong_Check(args[4]))
        return declined();
    PyArrayObject *x = (PyArrayObject *)args[0];
    npy_intp dim = PyLong_AsSsize_t(args[1]), step = PyLong_AsSsize_t(args[4]), start, end;
    if (PyErr_Occurred()) return PyErr_Clear(), declined();
    if (dim < 0 || dim >= PyArray_NDIM(x) || step <= 0) return misfit();
    npy_intp size = PyArray_DIM(x, int(dim));
    if (!read_place(args[2], size, 0, start) || !read_place(args[3], size, size, end)) return misfit();
    View view(x);
    for (int d = 0; d < PyArray_NDIM(x); d++) view.add(d);
    view.shape[dim] = end > start ? (end - start - 1) / step + 1 : 0;
    view.strides[dim] *= step;
    view.offset = start * PyArray_STRIDE(x, int(dim));
    return view.make();
}

// Replaces a -1 among extents for `size` elements; false: they do not fit.
static bool infer(npy_intp *shape, int nd, npy_intp size) {
    npy_intp known = 1, open = -1;
    for (int d = 0; d < nd; d++) {
        if (shape[d] < 0) {
            if (open >= 0 || shape[d] != -1) return false;
            open = d;
        } else {
            if (shape[d] && known > (npy_intp(1) << 60) / shape[d]) return false;
            known *= shape[d];
        }
    }
    if (open < 0) return known == size;
    if (!known || size % known) return false;
    shape[open] = size / known;
    return true;
}

// view(x, size)
static PyObject *view(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (names || n != 2 || !PyArray_CheckExact(args[0])) return declined();
    PyArrayObject *x = (PyArrayObject *)args[0];
    View view(x);
    view.nd = read_ints(args[1], view.shape);
    if (view.nd < 0 || !infer(view.shape, view.nd, PyArray_SIZE(x))) return misfit();
    if (!PyArray_SIZE(x) && view.nd == PyArray_NDIM(x) &&
        PyArray_CompareLists(view.shape, PyArray_DIMS(x), view.nd)) {
        std::copy_n(PyArray_STRIDES(x), view.nd, view.strides);
    } else if (PyArray_IS_C_CONTIGUOUS(x)) {
        npy_intp step = PyArray_ITEMSIZE(x);
        for (int d = view.nd - 1; d >= 0; d--) {
            view.strides[d] = step;
            step *= std::max<npy_intp>(view.shape[d], 1);
        }
    } else if (!reshaped_strides(x, view.nd, view.shape, view.strides)) {
        return declined();  // the twin says why
    }
    return view.make();
}

// view_as_real(x): each complex number as a row of two.
static PyObject *view_as_real(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (names || n != 1 || !PyArray_CheckExact(args[0])) return declined();
    PyArrayObject *x = (PyArrayObject *)args[0];
    int type = PyArray_TYPE(x) == NPY_CFLOAT ? NPY_FLOAT : PyArray_TYPE(x) == NPY_CDOUBLE ? NPY_DOUBLE : -1;
    if (type < 0 || PyArray_NDIM(x) >= NPY_MAXDIMS / 2) return declined();
    View view(x);
    for (int d = 0; d < PyArray_NDIM(x); d++) view.add(d);
    view.add(2, PyArray_ITEMSIZE(x) / 2);
    return view.make(type);
}

// view_as_complex(x): each row of two as a complex number.
static PyObject *view_as_complex(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (names || n != 1 || !PyArray_CheckExact(args[0])) return declined();
    PyArrayObject *x = (PyArrayObject *)args[0];
    int last = PyArray_NDIM(x) - 1;
    int type = PyArray_TYPE(x) == NPY_FLOAT ? NPY_CFLOAT : PyArray_TYPE(x) == NPY_DOUBLE ? NPY_CDOUBLE : -1;
    if (type < 0) return declined();
    if (last < 0 || PyArray_DIM(x, last) != 2) return misfit();
    View view(x);
    bool fits = !PyArray_SIZE(x) || PyArray_STRIDE(x, last) == PyArray_ITEMSIZE(x);
    fits &= (PyArray_BYTES(x) - PyArray_BYTES(root_of(x))) % (2 * PyArray_ITEMSIZE(x)) == 0;
    for (int d = 0; d < last; d++) {
        view.add(d);
        fits &= !PyArray_SIZE(x) || PyArray_DIM(x, d) == 1 ||
                PyArray_STRIDE(x, d) % (2 * PyArray_ITEMSIZE(x)) == 0;
    }
    return fits ? view.make(type) : misfit();
}

// The parts of `x` along `dim` with these extents.
static PyObject *parts(PyArrayObject *x, npy_intp dim, Py_ssize_t count, const npy_intp *extents) {
    PyObject *list = PyList_New(count);
    View view(x);
    for (int d = 0; d < PyArray_NDIM(x); d++) view.add(d);
    for (Py_ssize_t i = 0; list && i < count; i++) {
        view.shape[dim] = extents[i];
        PyObject *part = view.make();
        if (part) PyList_SET_ITEM(list, i, part);
        else Py_CLEAR(list);
        view.offset += extents[i] * PyArray_STRIDE(x, int(dim));
    }
    return list;
}

// One number, or several in a tuple; -1 for anything else.
static int read_dims(PyObject *value, npy_intp *to) {
    if (!PyLong_Check(value)) return read_ints(value, to);
    to[0] = PyLong_AsSsize_t(value);
    return to[0] == -1 && PyErr_Occurred() ? (PyErr_Clear(), -1) : 1;
}

// moved(nd, source, destination): the order of dimensions that takes some to other places.
static PyObject *moved(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    npy_intp source[NPY_MAXDIMS], destination[NPY_MAXDIMS], order[NPY_MAXDIMS], seen = 0;
    if (names || n != 3 || !PyLong_Check(args[0])) return declined();
    npy_intp nd = PyLong_AsSsize_t(args[0]);
    int count = read_dims(args[1], source);
    if (nd < 1 || nd > NPY_MAXDIMS || count < 0 || read_dims(args[2], destination) != count)
        return PyErr_Clear(), declined();
    std::fill_n(order, nd, -1);
    for (int i = 0; i < count; i++) {
        npy_intp from = source[i] < 0 ? source[i] + nd : source[i];
        npy_intp to = destination[i] < 0 ? destination[i] + nd : destination[i];
        if (from < 0 || from >= nd || to < 0 || to >= nd || order[to] >= 0 || seen >> from & 1)
            return declined();
        order[to] = from, seen |= npy_intp(1) << from;
    }
    PyObject *tuple = PyTuple_New(nd);
    for (npy_intp d = 0, next = 0; tuple && d < nd; d++) {
        while (order[d] < 0 && seen >> next & 1) next++;
        PyTuple_SET_ITEM(tuple, d, PyLong_FromSsize_t(order[d] < 0 ? next++ : order[d]));
    }
    return tuple;
}

// broadcast_shapes(*shapes): what shapes, as tuples, broadcast to.
static PyObject *broadcast_shapes(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    npy_intp found[NPY_MAXDIMS], own[NPY_MAXDIMS];
    int nd = 0;
    if (names) return declined();
    for (Py_ssize_t i = 0; i < n; i++) {
        int count = read_ints(args[i], own);
        if (count < 0) return declined();
        if (count > nd) {
            std::copy_backward(found, found + nd, found + count);
            std::fill_n(found, count - nd, 1);
            nd = count;
        }
        for (int d = 0; d < count; d++) {
            npy_intp &to = found[nd - count + d];
            if (to != own[d] && to != 1 && own[d] != 1) return declined();  // the twin says why not
            if (to == 1) to = own[d];
        }
    }
    PyObject *tuple = PyTuple_New(nd);
    for (int d = 0; tuple && d < nd; d++) PyTuple_SET_ITEM(tuple, d, PyLong_FromSsize_t(found[d]));
    return tuple;
}

constexpr npy_intp MANY = 4096;

// split(x, size, dim): parts of one extent, the last of what is left.
static PyObject *split(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyArrayObject *x;
    npy_intp a[2], extents[MANY];
    if (!read(args, n, names, 3, x, a) || a[1] < 0 || a[1] >= PyArray_NDIM(x) || a[0] < 0)
        return misfit();
    npy_intp size = PyArray_DIM(x, int(a[1])), each = a[0];
    if (!each && size) return misfit();
    npy_intp count = each ? std::max<npy_intp>((size + each - 1) / each, 1) : 1;
    if (count > MANY) return declined();
    for (npy_intp i = 0; i < count; i++) extents[i] = std::min(each, size - i * each);
    return parts(x, a[1], count, extents);
}

static PyObject *split_with_sizes(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    npy_intp extents[NPY_MAXDIMS], total = 0;
    if (names || n != 3 || !PyArray_CheckExact(args[0]) || !PyLong_Check(args[2])) return misfit();
    if (PyTuple_Check(args[1]) && PyTuple_GET_SIZE(args[1]) > NPY_MAXDIMS) return declined();
    PyArrayObject *x = (PyArrayObject *)args[0];
    int count = read_ints(args[1], extents);
    npy_intp dim = PyLong_AsSsize_t(args[2]);
    if (count < 0 || dim < 0 || dim >= PyArray_NDIM(x)) return PyErr_Clear(), misfit();
    for (int i = 0; i < count; i++) {
        if (extents[i] < 0) return misfit();
        total += extents[i];
    }
    return total == PyArray_DIM(x, int(dim)) ? parts(x, dim, count, extents) : misfit();
}

static PyObject *unbind(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyArrayObject *x;
    npy_intp dim;
    if (!read(args, n, names, 2, x, &dim) || dim < 0 || dim >= PyArray_NDIM(x)) return misfit();
    View view(x);
    for (int d = 0; d < PyArray_NDIM(x); d++)
        if (d != dim) view.add(d);
    PyObject *list = PyList_New(PyArray_DIM(x, int(dim)));
    for (npy_intp i = 0; list && i < PyArray_DIM(x, int(dim)); i++) {
        PyObject *part = view.make();
        if (part) PyList_SET_ITEM(list, i, part);
        else Py_CLEAR(list);
        view.offset += PyArray_STRIDE(x, int(dim));
    }
    return list;
}

// diagonal(x, offset, dim1, dim2)
static PyObject *diagonal(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyArrayObject *x;
    npy_intp a[3];
    if (!read(args, n, names, 4, x, a) || a[1] == a[2] || std::min(a[1], a[2]) < 0 ||
        std::max(a[1], a[2]) >= PyArray_NDIM(x))
        return misfit();
    int first = int(a[1]), second = int(a[2]);
    npy_intp rows = PyArray_DIM(x, first), columns = PyArray_DIM(x, second), offset = a[0];
    npy_intp size = offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns);
    View view(x);
    for (int d = 0; d < PyArray_NDIM(x); d++)
        if (d != first && d != second) view.add(d);
    view.add(std::max<npy_intp>(size, 0), PyArray_STRIDE(x, first) + PyArray_STRIDE(x, second));
    if (size > 0)
        view.offset = offset >= 0 ? offset * PyArray_STRIDE(x, second)
                                  : -offset * PyArray_STRIDE(x, first);
    return view.make();
}

// windows(x, dim, size, step)
static PyObject *windows(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyArrayObject *x;
    npy_intp a[3];
    if (!read(args, n, names, 4, x, a) || a[1] < 0 || a[2] <= 0) return misfit();
    npy_intp dim = a[0], size = a[1], step = a[2];
    View view(x);
    if (!PyArray_NDIM(x)) {
        if (size > 1) return misfit();
        view.add(size, PyArray_ITEMSIZE(x));
        return view.make();
    }
    if (dim < 0 || dim >= PyArray_NDIM(x) || size > PyArray_DIM(x, int(dim))) return misfit();
    for (int d = 0; d < PyArray_NDIM(x); d++) view.add(d);
    view.shape[dim] = (PyArray_DIM(x, int(dim)) - size) / step + 1;
    view.strides[dim] *= step;
    view.add(size, PyArray_STRIDE(x, int(dim)));
    return view.make();
}

}  // namespace moving

int register_view_kernels(PyObject *module) {
    using namespace moving;
    return make_functions(module, {{"squeeze", squeeze}, {"t", t}, {"slices", slices},
                                   {"slice", slice}, {"view", view}, {"moved", moved},
                                   {"broadcast_shapes", broadcast_shapes},
                                   {"view_as_real", view_as_real},
                                   {"view_as_complex", view_as_complex}, {"split", split},
                                   {"split_with_sizes", split_with_sizes}, {"unbind", unbind},
                                   {"diagonal", diagonal}, {"windows", windows}});
}
