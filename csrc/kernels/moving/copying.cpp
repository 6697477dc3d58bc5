// Copies between layouts. Where neighbours in the source are not neighbours in the copy, element by
// element copying touches a cache line of memory for each element; here square tiles go through a
// buffer, so that both sides are read and written in whole lines.
#include <algorithm>
#include <vector>

#include "kernels/moving/copying.h"
#include "kernels/moving/strided.h"
#include "kernels/moving/transposed.h"
#include "parallel.h"

namespace {

constexpr int TILE = 32;

struct Dim {
    npy_intp n, from, to;  // extent, strides in bytes of the source and of the copy
};

struct Plan {
    int nd;
    Dim dims[NPY_MAXDIMS];  // by falling stride of the copy; the last is contiguous there
};

// The dimensions of both sides, those of extent 1 left out, neighbours that are one range merged.
// False where the copy is not made of whole elements side by side.
bool plan_of(PyArrayObject *source, PyArrayObject *target, Plan &plan) {
    int nd = 0;
    npy_intp item = PyArray_ITEMSIZE(source);
    for (int i = 0; i < PyArray_NDIM(source); i++) {
        Dim d = {PyArray_DIM(source, i), PyArray_STRIDE(source, i), PyArray_STRIDE(target, i)};
        if (d.n == 1) continue;
        if (d.from < 0 || d.to < item) return false;
        int at = nd++;
        for (; at > 0 && plan.dims[at - 1].to < d.to; at--) plan.dims[at] = plan.dims[at - 1];
        plan.dims[at] = d;
    }
    int kept = 0;
    for (int i = 0; i < nd; i++) {
        Dim d = plan.dims[i];
        if (kept) {
            Dim &outer = plan.dims[kept - 1];
            if (outer.to == d.to * d.n && outer.from == d.from * d.n) {
                outer = {outer.n * d.n, d.from, d.to};
                continue;
            }
        }
        plan.dims[kept++] = d;
    }
    plan.nd = kept;
    return kept > 0 && plan.dims[kept - 1].to == item;
}

// to[i][j] = from[i][j] for i < n, j < m: contiguous along j in `to`, along i in `from` (nearly).
template <class T>
INLINE void tile(const char *from, char *to, npy_intp n, npy_intp m, npy_intp from_i, npy_intp from_j,
                 npy_intp to_i) {
    T buffer[TILE][TILE];
    for (npy_intp j = 0; j < m; j++) {
        const char *p = from + j * from_j;
        for (npy_intp i = 0; i < n; i++) std::memcpy(&buffer[i][j], p + i * from_i, sizeof(T));
    }
    for (npy_intp i = 0; i < n; i++) std::memcpy(to + i * to_i, buffer[i], m * sizeof(T));
}

// One of the usual size, so that the compiler knows all extents; four columns at once.
template <class T>
INLINE void whole_tile(const char *from, char *to, npy_intp from_j, npy_intp to_i) {
    T buffer[TILE][TILE];
    for (npy_intp j = 0; j < TILE; j += 4)
        for (npy_intp i = 0; i < TILE; i += 4)
            turn_four<T>(from + j * from_j + i * npy_intp(sizeof(T)), from_j, (char *)&buffer[i][j], sizeof buffer[0]);
    for (npy_intp i = 0; i < TILE; i++) std::memcpy(to + i * to_i, buffer[i], sizeof buffer[i]);
}

// Dimension `across` of the plan has the smallest stride in the source: it and the last are tiled.
template <class T>
void copy_tiles(const char *from, char *to, const Plan &plan, int across) {
    const Dim &last = plan.dims[plan.nd - 1], &inner = plan.dims[across];
    npy_intp strips = (inner.n + TILE - 1) / TILE, count = strips;
    for (int i = 0; i < plan.nd - 1; i++)
        if (i != across) count *= plan.dims[i].n;
    npy_intp elements = TILE * last.n;
    parallel_for(count, PARALLEL_FROM / elements + 1, [&](int64_t begin, int64_t end) {
        for (int64_t piece = begin; piece < end; piece++) {
            int64_t rest = piece / strips;
            npy_intp i = piece % strips * TILE, n = inner.n - i < TILE ? inner.n - i : TILE;
            const char *p = from + i * inner.from;
            char *q = to + i * inner.to;
            for (int d = plan.nd - 2; d >= 0; d--) {
                if (d == across) continue;
                npy_intp at = rest % plan.dims[d].n;
                rest /= plan.dims[d].n;
                p += at * plan.dims[d].from;
                q += at * plan.dims[d].to;
            }
            for (npy_intp j = 0; j < last.n; j += TILE) {
                npy_intp m = last.n - j < TILE ? last.n - j : TILE;
                const char *x = p + j * last.from;
                char *y = q + j * npy_intp(sizeof(T));
                if (n == TILE && m == TILE && inner.from == npy_intp(sizeof(T)))
                    whole_tile<T>(x, y, last.from, inner.to);
                else
                    tile<T>(x, y, n, m, inner.from, last.from, inner.to);
            }
        }
    }, 1);
}

struct alignas(8) Sixteen {
    uint64_t low, high;
};

// Copy `source` to `target`, of the same shape and dtype; false where tiles do not help.
bool copy_tiled(PyArrayObject *source, PyArrayObject *target) {
    npy_intp item = PyArray_ITEMSIZE(source);
    Plan plan;
    if (PyArray_SIZE(source) < 4096 || PyDataType_REFCHK(PyArray_DESCR(source)) ||
        !plan_of(source, target, plan) || plan.nd < 2)
        return false;
    int across = plan.nd - 1;
    for (int i = plan.nd - 2; i >= 0; i--)
        if (plan.dims[i].from && plan.dims[i].from < plan.dims[across].from) across = i;
    if (across == plan.nd - 1 || plan.dims[across].n < 4 || plan.dims[plan.nd - 1].n < 4) return false;
    const char *from = PyArray_BYTES(source);
    char *to = PyArray_BYTES(target);
    switch (item) {
        case 1: copy_tiles<uint8_t>(from, to, plan, across); return true;
        case 2: copy_tiles<uint16_t>(from, to, plan, across); return true;
        case 4: copy_tiles<uint32_t>(from, to, plan, across); return true;
        case 8: copy_tiles<uint64_t>(from, to, plan, across); return true;
        case 16: copy_tiles<Sixteen>(from, to, plan, across); return true;
    }
    return false;
}

PyArrayObject *row_major_copy(PyArrayObject *source) {
    if (PyArray_IS_C_CONTIGUOUS(source)) return (PyArrayObject *)PyArray_NewCopy(source, NPY_CORDER);
    PyArray_Descr *descr = PyArray_DESCR(source);
    Py_INCREF(descr);
    PyArrayObject *result = (PyArrayObject *)PyArray_NewLikeArray(source, NPY_CORDER, descr, 0);
    if (!result) return nullptr;
    if (copy_tiled(source, result)) return result;
    if (moving::is_movable((PyObject *)source) && PyArray_DESCR(source) == PyArray_DESCR(result)) {
        moving::Range range;
        for (int d = 0; d < PyArray_NDIM(source); d++)
            range.add(PyArray_DIM(source, d), PyArray_STRIDE(result, d), PyArray_STRIDE(source, d));
        moving::copy(range, PyArray_BYTES(result), PyArray_BYTES(source), PyArray_ITEMSIZE(source));
        return result;
    }
    if (PyArray_CopyInto(result, source) < 0) Py_CLEAR(result);
    return result;
}

// A copy of an array in row-major order.
PyObject *copy_contiguous(PyObject *, PyObject *object) {
    if (!PyArray_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "expected an array");
        return nullptr;
    }
    return (PyObject *)row_major_copy((PyArrayObject *)object);
}

char *end_of(PyArrayObject *array) {
    char *end = PyArray_BYTES(array) + PyArray_ITEMSIZE(array);
    for (int i = 0; i < PyArray_NDIM(array); i++)
        end += (PyArray_DIM(array, i) - 1) * PyArray_STRIDE(array, i);
    return end;
}

// Where strides are positive, as a plan sees to.
bool apart(PyArrayObject *a, PyArrayObject *b) {
    return end_of(a) <= PyArray_BYTES(b) || end_of(b) <= PyArray_BYTES(a);
}

// Write `source`, broadcast, into `target` of the same dtype.
PyObject *copy_into(PyObject *, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 2 || !PyArray_Check(args[0]) || !PyArray_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "expected two arrays");
        return nullptr;
    }
    PyArrayObject *target = (PyArrayObject *)args[0], *source = (PyArrayObject *)args[1];
    bool same = PyArray_NDIM(target) == PyArray_NDIM(source) && PyArray_ISWRITEABLE(target) &&
                PyArray_DESCR(target) == PyArray_DESCR(source) &&
                PyArray_CompareLists(PyArray_DIMS(target), PyArray_DIMS(source), PyArray_NDIM(source)) &&
                !PyArray_IS_C_CONTIGUOUS(source) && apart(source, target);
    if (!(same && copy_tiled(source, target)) && PyArray_CopyInto(target, source) < 0) return nullptr;
    Py_RETURN_NONE;
}

// Row-major arrays of one type, joined along an axis; None for any others.
PyObject *join(PyObject *, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 2 || !PyList_Check(args[0]) || !PyLong_Check(args[1])) Py_RETURN_NONE;
    Py_ssize_t count = PyList_GET_SIZE(args[0]);
    long axis = PyLong_AsLong(args[1]);
    std::vector<const char *> from(count);
    std::vector<npy_intp> ends(count);  // in bytes of a row of the result
    npy_intp shape[NPY_MAXDIMS], outer = 1, row = 0;
    PyArrayObject *first = nullptr;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyList_GET_ITEM(args[0], i);
        PyArrayObject *x = (PyArrayObject *)item;
        if (!is_plain(item) || !PyArray_IS_C_CONTIGUOUS(x)) Py_RETURN_NONE;
        if (!first) {
            first = x;
            if (axis < 0 || axis >= PyArray_NDIM(x) || PyDataType_REFCHK(PyArray_DESCR(x))) Py_RETURN_NONE;
            std::copy(PyArray_DIMS(x), PyArray_DIMS(x) + PyArray_NDIM(x), shape);
            for (int d = 0; d < axis; d++) outer *= shape[d];
            shape[axis] = 0;
        }
        if (PyArray_DESCR(x) != PyArray_DESCR(first) || PyArray_NDIM(x) != PyArray_NDIM(first))
            Py_RETURN_NONE;
        for (int d = 0; d < PyArray_NDIM(x); d++)
            if (d != axis && PyArray_DIM(x, d) != shape[d]) Py_RETURN_NONE;
        shape[axis] += PyArray_DIM(x, int(axis));
        from[i] = PyArray_BYTES(x);
        row += outer ? PyArray_NBYTES(x) / outer : 0;
        ends[i] = row;
    }
    // NumPy copies pieces of a few bytes array by array, which is faster
    if (!first || outer * row < (1 << 14) || row < 16 * count) Py_RETURN_NONE;
    PyArray_Descr *descr = PyArray_DESCR(first);
    Py_INCREF(descr);
    PyArrayObject *result = (PyArrayObject *)PyArray_NewFromDescr(
        &PyArray_Type, descr, PyArray_NDIM(first), shape, nullptr, nullptr, 0, nullptr);
    if (!result) return nullptr;
    char *to = PyArray_BYTES(result);
    Py_BEGIN_ALLOW_THREADS
    parallel_for(outer * row, 1 << 18, [&](int64_t begin, int64_t end) {
        int64_t o = begin / row, within = begin % row;
        size_t i = std::upper_bound(ends.begin(), ends.end(), within) - ends.begin();
        for (int64_t at = begin; at < end;) {
            npy_intp start = i ? ends[i - 1] : 0, length = ends[i] - start;
            int64_t bytes = std::min<int64_t>(ends[i] - within, end - at);
            std::memcpy(to + at, from[i] + o * length + within - start, bytes);
            at += bytes, within += bytes;
            while (i < ends.size() && within == ends[i]) i++;
            if (i == ends.size()) {
                i = within = 0, o++;
                while (i < ends.size() && !ends[i]) i++;
            }
        }
    }, 64);
    Py_END_ALLOW_THREADS
    return (PyObject *)result;
}

PyMethodDef methods[] = {{"join", (PyCFunction)(void (*)())join, METH_FASTCALL, nullptr},
                         {"copy_contiguous", copy_contiguous, METH_O, nullptr},
                         {"copy_into", (PyCFunction)(void (*)())copy_into, METH_FASTCALL, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyArrayObject *row_major(PyArrayObject *x) {
    if (!PyArray_IS_C_CONTIGUOUS(x)) return row_major_copy(x);
    Py_INCREF(x);
    return x;
}

int register_copying(PyObject *module) { return PyModule_AddFunctions(module, methods); }
