// Padding by mirrors, and pixels moved to channels and back, of elements of any type:
// flambeau/ops/spatial/padding.py and flambeau/ops/spatial/pixel_shuffle.py say what is wrong.
#include "kernels/checked/checked.h"

namespace checked {

// A row-major array without objects.
static PyArrayObject *elements(PyObject *x) {
    bool fits = moving::is_movable(x) && PyArray_IS_C_CONTIGUOUS((PyArrayObject *)x);
    return fits ? (PyArrayObject *)x : nullptr;
}

// ---- padding ------------------------------------------------------------------------------------

enum Mirror { REFLECT, REPLICATE, CIRCULAR };

// (self, padding)
template <Mirror mode>
static PyObject *mirrored(PyObject *const *args) {
    static PyObject *names[] = {PyUnicode_InternFromString("reflect"),
                                PyUnicode_InternFromString("replicate"),
                                PyUnicode_InternFromString("circular")};
    PyArrayObject *x = elements(args[0]);
    if (!x || !PyTuple_CheckExact(args[1])) return moving::misfit();
    int n = int(PyTuple_GET_SIZE(args[1])) / 2, rank = PyArray_NDIM(x);
    npy_intp shape[NPY_MAXDIMS];
    if (PyTuple_GET_SIZE(args[1]) % 2 || n < 1 || n > 3 || (rank != n + 1 && rank != n + 2) ||
        !has_elements(x, n + 1) || has_channels_last(x))
        return moving::misfit();
    std::copy(PyArray_DIMS(x), PyArray_DIMS(x) + rank, shape);
    for (int d = rank - 1, i = 0; i < n; d--, i++) {
        npy_intp before, after, size = PyArray_DIM(x, d);
        if (!take_int(PyTuple_GET_ITEM(args[1], 2 * i), before) ||
            !take_int(PyTuple_GET_ITEM(args[1], 2 * i + 1), after))
            return moving::misfit();
        npy_intp most = mode == REFLECT ? size - 1 : mode == CIRCULAR ? size : before + after + 1;
        bool fits = mode == REPLICATE || (before <= most && after <= most);
        shape[d] = size + before + after;
        if (!fits || shape[d] < 1) return moving::misfit();
    }
    if (!PyArray_SIZE(x)) return (PyObject *)moving::empty(x, rank, shape);
    PyObject *given[] = {args[0], args[1], names[mode]};
    PyObject *found = moving::mirror_pad(given, 3, nullptr);
    if (found != Py_NotImplemented) return found;
    Py_DECREF(found);
    return moving::misfit();
}

// ---- pixels and channels ------------------------------------------------------------------------

// The elements of `x` in the order that strides of `range` say, as an array of that shape.
static PyObject *reordered(PyArrayObject *x, moving::Range range, int rank, const npy_intp *shape) {
    npy_intp item = PyArray_ITEMSIZE(x), step = item;
    PyArrayObject *result = moving::empty(x, rank, shape);
    if (!result) return nullptr;
    for (int d = range.nd - 1; d >= 0; d--) {
        range.to[d] = step, range.from[d] *= item;
        step *= range.shape[d];
    }
    if (PyArray_SIZE(result)) moving::copy(range, PyArray_BYTES(result), PyArray_BYTES(x), item);
    return (PyObject *)result;
}

// (self, factor): the channels (…, c r², h, w) as pixels, or back.
template <bool back>
static PyObject *shuffled(PyObject *const *args) {
    PyArrayObject *x = elements(args[0]);
    npy_intp r, shape[NPY_MAXDIMS];
    if (!x || PyArray_NDIM(x) < 3 || has_channels_last(x) || !take_int(args[1], r) || r < 1 ||
        r > 1 << 15)
        return moving::misfit();
    int rank = PyArray_NDIM(x);
    std::copy(PyArray_DIMS(x), PyArray_DIMS(x) + rank, shape);
    npy_intp &c = shape[rank - 3], &h = shape[rank - 2], &w = shape[rank - 1];
    if (back ? h % r || w % r : c % (r * r)) return moving::misfit();
    npy_intp lead = network::product(shape, shape + rank - 3), plane = h * w, image = c * plane,
             row = w;
    moving::Range range;
    if (back) {
        h /= r, w /= r;
        range.add(lead, 0, image), range.add(c, 0, plane), range.add(r, 0, row), range.add(r, 0, 1);
        range.add(h, 0, row * r), range.add(w, 0, r);
        c *= r * r;
    } else {
        c /= r * r;
        range.add(lead, 0, image), range.add(c, 0, plane * r * r), range.add(h, 0, row);
        range.add(r, 0, plane * r), range.add(w, 0, 1), range.add(r, 0, plane);
        h *= r, w *= r;
    }
    return reordered(x, range, rank, shape);
}

// (self, groups)
static PyObject *exchanged(PyObject *const *args) {
    PyArrayObject *x = elements(args[0]);
    npy_intp groups;
    if (!x || PyArray_NDIM(x) < 3 || has_channels_last(x) || !take_int(args[1], groups) ||
        groups < 1 || PyArray_DIM(x, 1) % groups)
        return moving::misfit();
    npy_intp n = PyArray_DIM(x, 0), c = PyArray_DIM(x, 1), each = c / groups,
             area = network::product(PyArray_DIMS(x) + 2, PyArray_DIMS(x) + PyArray_NDIM(x));
    moving::Range range;
    range.add(n, 0, c * area), range.add(each, 0, area), range.add(groups, 0, each * area);
    range.add(area, 0, 1);
    return reordered(x, range, PyArray_NDIM(x), PyArray_DIMS(x));
}

static PyObject *reflection_pad(PyObject *const *args) { return mirrored<REFLECT>(args); }
static PyObject *replication_pad(PyObject *const *args) { return mirrored<REPLICATE>(args); }
static PyObject *circular_pad(PyObject *const *args) { return mirrored<CIRCULAR>(args); }
static PyObject *pixel_shuffle(PyObject *const *args) { return shuffled<false>(args); }
static PyObject *pixel_unshuffle(PyObject *const *args) { return shuffled<true>(args); }

static PyMethodDef methods[] = {
    CHECKED_METHOD(reflection_pad, 2),  CHECKED_METHOD(replication_pad, 2),
    CHECKED_METHOD(circular_pad, 2),    CHECKED_METHOD(pixel_shuffle, 2),
    CHECKED_METHOD(pixel_unshuffle, 2), CHECKED_METHOD(exchanged, 2),
    {nullptr, nullptr, 0, nullptr}};

int register_rearranging(PyObject *module) { return PyModule_AddFunctions(module, methods); }

}  // namespace checked
