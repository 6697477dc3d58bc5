#include "kernels/moving/places.h"

#include "kernels/pointwise/kernel.h"

#include <algorithm>

namespace moving {

// An array of integers as int64 numbers broadcast to the places, or one dimension of a mask.
struct Index {
    PyArrayObject *array = nullptr;
    bool wide = true;
    npy_intp strides[NPY_MAXDIMS];
    int64_t at(const char *p) const { return wide ? *(const int64_t *)p : *(const int32_t *)p; }
};

static bool is_integer(PyArrayObject *x, bool &wide) {
    DType type = dtype_of(PyArray_TYPE(x));
    wide = type == I8;
    return type == I8 || type == I4;
}

// Of a mask: the offsets of the places where it is true.
static bool read_mask(const Target &t, PyArrayObject *mask, int at, Places &p) {
    int depth = PyArray_NDIM(mask);
    if (!depth || at + depth > t.nd) return false;
    for (int d = 0; d < depth; d++)
        if (PyArray_DIM(mask, d) != t.shape[at + d]) return false;
    npy_intp place[NPY_MAXDIMS] = {}, offset = 0;
    const char *m = PyArray_BYTES(mask);
    npy_intp n = PyArray_SIZE(mask);
    bool even = PyArray_IS_C_CONTIGUOUS(mask);      // do the places lie evenly?
    for (int d = 0; d + 1 < depth; d++)
        even &= t.strides[at + d] == t.strides[at + d + 1] * t.shape[at + d + 1];
    if (even) {
        npy_intp found = 0, count = 0, step = t.strides[at + depth - 1];
        for (npy_intp i = 0; i < n; i++) count += m[i] != 0;
        p.offsets.resize(count + 1);                // written whether it counts or not
        for (npy_intp i = 0; i < n; i++) p.offsets[found] = i * step, found += m[i] != 0;
        p.offsets.resize(count);
    }
    for (npy_intp i = 0; i < n && !even; i++) {
        if (*m) p.offsets.push_back(offset);
        for (int d = depth - 1; d >= 0; d--) {
            m += PyArray_STRIDE(mask, d), offset += t.strides[at + d];
            if (++place[d] < t.shape[at + d]) break;
            m -= PyArray_STRIDE(mask, d) * t.shape[at + d];
            offset -= t.strides[at + d] * t.shape[at + d];
            place[d] = 0;
        }
    }
    p.count = npy_intp(p.offsets.size());
    p.before = at, p.indexed = 1;
    for (int d = 0; d < at; d++) p.shape[p.nd] = t.shape[d], p.strides[p.nd++] = t.strides[d];
    p.shape[p.nd] = p.count, p.strides[p.nd++] = 0;
    for (int d = at + depth; d < t.nd; d++)
        p.shape[p.nd] = t.shape[d], p.strides[p.nd++] = t.strides[d];
    return true;
}

bool Places::read(const Target &t, PyObject *const *indices, int n, const int *where) {
    if (n < 1 || n > MAX_INDICES || t.nd > NPY_MAXDIMS / 2) return false;
    for (int i = 0; i < n; i++)
        if (!is_plain(indices[i]) || PyArray_NDIM((PyArrayObject *)indices[i]) > NPY_MAXDIMS / 2)
            return false;
    if (n == 1 && PyArray_TYPE((PyArrayObject *)indices[0]) == NPY_BOOL)
        return read_mask(t, (PyArrayObject *)indices[0], where[0], *this);
    Index all[MAX_INDICES];
    npy_intp extents[NPY_MAXDIMS];
    for (int i = 0; i < n; i++) {
        Index &x = all[i];
        x.array = (PyArrayObject *)indices[i];
        if (!is_integer(x.array, x.wide) || where[i] >= t.nd || (i && where[i] <= where[i - 1]))
            return false;
        indexed = std::max(indexed, PyArray_NDIM(x.array));
    }
    for (int d = 0; d < indexed; d++) {
        extents[d] = 1;
        for (int i = 0; i < n; i++) {
            int own = d - (indexed - PyArray_NDIM(all[i].array));
            npy_intp m = own < 0 ? 1 : PyArray_DIM(all[i].array, own);
            if (m != 1 && extents[d] != 1 && m != extents[d]) return false;
            if (m != 1) extents[d] = m;
        }
        count *= extents[d];
    }
    for (int i = 0; i < n; i++)
        for (int d = 0; d < indexed; d++) {
            int own = d - (indexed - PyArray_NDIM(all[i].array));
            bool spread = own < 0 || PyArray_DIM(all[i].array, own) != extents[d];
            all[i].strides[d] = spread ? 0 : PyArray_STRIDE(all[i].array, own);
        }
    offsets.assign(count, 0);
    for (int i = 0; i < n && count; i++) {
        const Index &x = all[i];
        npy_intp size = t.shape[where[i]], step = t.strides[where[i]], at[NPY_MAXDIMS] = {};
        const char *p = PyArray_BYTES(x.array);
        for (npy_intp k = 0; k < count; k++) {
            int64_t place = x.at(p);
            if (place < 0) place += size;
            if (place < 0 || place >= size) return false;
            offsets[k] += place * step;
            for (int d = indexed - 1; d >= 0; d--) {
                p += x.strides[d];
                if (++at[d] < extents[d]) break;
                p -= x.strides[d] * extents[d];
                at[d] = 0;
            }
        }
    }
    bool adjacent = where[n - 1] - where[0] == n - 1;
    auto add_indexed = [&] {
        before = nd;
        for (int e = 0; e < indexed; e++) shape[nd] = extents[e], strides[nd++] = 0;
    };
    if (!adjacent) add_indexed();
    for (int d = 0, k = 0; d < t.nd; d++) {
        if (k == n || where[k] != d) {
            shape[nd] = t.shape[d], strides[nd++] = t.strides[d];
        } else if (k++ == 0 && adjacent) {
            add_indexed();
        }
    }
    return nd <= NPY_MAXDIMS / 2;
}

// body(place, other) for each block of elements behind the indices: `other` is where the block of an
// array with the result's shape and these strides begins.
template <class Body>
static INLINE void for_blocks(const Target &t, const Places &p, char *other, const npy_intp *strides,
                              Body body) {
    npy_intp at[NPY_MAXDIMS] = {}, outer = 0;
    bool flat = true;       // are the places of `other` one after the other?
    for (int d = p.before; d + 1 < p.before + p.indexed; d++)
        flat &= strides[d] == strides[d + 1] * p.shape[d + 1];
    npy_intp step = p.indexed ? strides[p.before + p.indexed - 1] : 0;
    for (;;) {
        char *q = other;
        if (flat) {
            for (npy_intp k = 0; k < p.count; k++, q += step) body(t.data + outer + p.offsets[k], q);
        } else {
            npy_intp place[NPY_MAXDIMS] = {};
            for (npy_intp k = 0; k < p.count; k++) {
                body(t.data + outer + p.offsets[k], q);
                for (int d = p.before + p.indexed - 1; d >= p.before; d--) {
                    q += strides[d];
                    if (++place[d] < p.shape[d]) break;
                    q -= strides[d] * p.shape[d];
                    place[d] = 0;
                }
            }
        }
        int d = p.before - 1;
        for (; d >= 0; d--) {
            outer += p.strides[d], other += strides[d];
            if (++at[d] < p.shape[d]) break;
            outer -= p.strides[d] * p.shape[d], other -= strides[d] * p.shape[d];
            at[d] = 0;
        }
        if (d < 0) return;
    }
}

static bool is_empty(const Places &p) {
    return std::find(p.shape, p.shape + p.nd, 0) != p.shape + p.nd;
}

// The block behind the indices, in the target and in an array with these strides.
static Range block(const Places &p, const npy_intp *strides) {
    Range r;
    for (int d = p.before + p.indexed; d < p.nd; d++) r.add(p.shape[d], p.strides[d], strides[d]);
    r.simplify();
    return r;
}

PyArrayObject *take(const Target &t, const Places &p, PyArrayObject *like) {
    PyArrayObject *result = empty(like, p.nd, p.shape);
    if (!result || is_empty(p)) return result;
    const npy_intp *strides = PyArray_STRIDES(result);
    Range r = block(p, strides);
    char *to = PyArray_BYTES(result);
    npy_intp item = t.item;
    if (!r.nd) {
        bool known = with_size(item, [&](auto type) {
            using T = decltype(type);
            for_blocks(t, p, to, strides, [](char *x, char *y) { std::memcpy(y, x, sizeof(T)); });
        });
        if (!known)
            for_blocks(t, p, to, strides, [=](char *x, char *y) { std::memcpy(y, x, item); });
    } else if (r.nd == 1 && r.to[0] == item && r.from[0] == item) {
        npy_intp size = r.shape[0] * item;
        for_blocks(t, p, to, strides, [=](char *x, char *y) { std::memcpy(y, x, size); });
    } else {
        Range back = r;
        std::swap_ranges(back.to, back.to + back.nd, back.from);
        for_blocks(t, p, to, strides, [&](char *x, char *y) { copy(back, y, x, item); });
    }
    return result;
}

// Strides of `values` broadcast to the places; false if they do not fit.
static bool spread(const Places &p, PyArrayObject *values, npy_intp *strides) {
    int extra = p.nd - PyArray_NDIM(values);
    if (extra < 0) return false;
    for (int d = 0; d < p.nd; d++) {
        npy_intp m = d < extra ? 1 : PyArray_DIM(values, d - extra);
        if (m != 1 && m != p.shape[d]) return false;
        strides[d] = d < extra || m != p.shape[d] ? 0 : PyArray_STRIDE(values, d - extra);
    }
    return true;
}

template <class T>
static void add_places(const Target &t, const Places &p, PyArrayObject *values,
                       const npy_intp *strides) {
    Range r = block(p, strides);
    if (!r.nd) r.add(1, 0, 0);
    npy_intp n = r.shape[r.nd - 1], step = r.to[r.nd - 1], other = r.from[r.nd - 1];
    Range outer = r;
    outer.nd--;
    npy_intp rows = outer.size();
    for_blocks(t, p, PyArray_BYTES(values), strides, [&](char *x, char *y) {
        for (npy_intp row = 0; row < rows; row++) {
            npy_intp rest = row;
            char *a = x, *b = y;
            for (int d = outer.nd - 1; d >= 0; d--) {
                a += rest % outer.shape[d] * outer.to[d], b += rest % outer.shape[d] * outer.from[d];
                rest /= outer.shape[d];
            }
            for (npy_intp i = 0; i < n; i++) *(T *)(a + i * step) += *(const T *)(b + i * other);
        }
    });
}

bool put(const Target &t, const Places &p, PyArrayObject *values, bool add) {
    npy_intp strides[NPY_MAXDIMS], item = t.item;
    if (!spread(p, values, strides)) return false;
    DType type = dtype_of(PyArray_TYPE(values));
    if (add && type != F4 && type != F8 && type != I8 && type != I4) return false;
    if (is_empty(p)) return true;
    if (add) {
        if (type == F4) add_places<float>(t, p, values, strides);
        if (type == F8) add_places<double>(t, p, values, strides);
        if (type == I8) add_places<uint64_t>(t, p, values, strides);    // which wrap around
        if (type == I4) add_places<uint32_t>(t, p, values, strides);
        return true;
    }
    Range r = block(p, strides);
    char *from = PyArray_BYTES(values);
    if (!r.nd) {
        bool known = with_size(item, [&](auto type) {
            using T = decltype(type);
            for_blocks(t, p, from, strides, [](char *x, char *y) { std::memcpy(x, y, sizeof(T)); });
        });
        if (known) return true;
    }
    for_blocks(t, p, from, strides, [&](char *x, char *y) { copy(r, x, y, item); });
    return true;
}

void fill_places(const Target &t, const Places &p, const char *value) {
    npy_intp none[NPY_MAXDIMS] = {};
    if (is_empty(p)) return;
    Range r = block(p, none);
    if (!r.nd) {
        bool known = with_size(t.item, [&](auto type) {
            using T = decltype(type);
            T element;
            std::memcpy(&element, value, sizeof(T));
            for_blocks(t, p, t.data, none, [=](char *x, char *) { std::memcpy(x, &element, sizeof(T)); });
        });
        if (known) return;
    }
    for_blocks(t, p, t.data, none, [&](char *x, char *) { fill(r, x, value, t.item); });
}

bool fill_masked(const Target &t, PyArrayObject *mask, int at, const char *value) {
    int depth = PyArray_NDIM(mask);
    npy_intp n = PyArray_SIZE(mask), item = t.item;
    bool flat = at == 0 && depth == t.nd && PyArray_IS_C_CONTIGUOUS(mask) && depth;
    npy_intp step = item;
    for (int d = depth - 1; flat && d >= 0; d--) {
        flat = PyArray_DIM(mask, d) == t.shape[d] && (t.shape[d] == 1 || t.strides[d] == step);
        step *= t.shape[d];
    }
    if (flat) {
        const bool *m = (const bool *)PyArray_DATA(mask);
        flat = with_size(item, [&](auto type) {
            using T = decltype(type);
            T element, *to = (T *)t.data;
            std::memcpy(&element, value, sizeof(T));
            for (npy_intp i = 0; i < n; i++)
                if (m[i]) to[i] = element;
        });
        if (flat) return true;
    }
    Places places;
    if (!read_mask(t, mask, at, places)) return false;
    fill_places(t, places, value);
    return true;
}

// ---- kernels ------------------------------------------------------------------------------------

static Target target_of(PyArrayObject *x) {
    return {PyArray_NDIM(x), PyArray_DIMS(x), PyArray_STRIDES(x), PyArray_BYTES(x),
            PyArray_ITEMSIZE(x)};
}

// The arrays of a list, and where those from `first` on begin; -1: not this case.
static int read(PyObject *arrays, PyObject *places, int first, PyObject **items, int *where) {
    if (!PyList_CheckExact(arrays) || !PyTuple_CheckExact(places)) return -1;
    Py_ssize_t n = PyList_GET_SIZE(arrays);
    if (n > first + MAX_INDICES || n - first != PyTuple_GET_SIZE(places) || n <= first) return -1;
    for (int i = 0; i < n; i++) items[i] = PyList_GET_ITEM(arrays, i);
    for (int i = 0; i < n - first; i++) where[i] = int(PyLong_AsLong(PyTuple_GET_ITEM(places, i)));
    if (!is_movable(items[0])) return -1;
    return int(n) - first;
}

// Are its elements in the order of a row-major array, if with gaps between them?
static bool lies_row_after_row(PyArrayObject *x) {
    npy_intp extent = PyArray_ITEMSIZE(x);
    for (int d = PyArray_NDIM(x) - 1; d >= 0; d--) {
        if (PyArray_DIM(x, d) < 2 || PyArray_STRIDE(x, d) < extent) return false;
        extent = PyArray_STRIDE(x, d) * PyArray_DIM(x, d);
    }
    return true;
}

// index(arrays, where): the elements of the first array that the others index. Only where the result
// is row-major in memory, as PyTorch has it.
static PyObject *index(PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *items[MAX_INDICES + 1];
    int where[MAX_INDICES];
    int n = names || count != 2 ? -1 : read(args[0], args[1], 1, items, where);
    if (n < 0) return declined();
    PyArrayObject *x = (PyArrayObject *)items[0];
    bool contiguous = PyArray_IS_C_CONTIGUOUS(x);
    if (!contiguous && !lies_row_after_row(x)) return declined();
    for (int i = 0; i < n; i++) {
        if (!PyArray_Check(items[i + 1])) return declined();
        bool row_major = PyArray_IS_C_CONTIGUOUS((PyArrayObject *)items[i + 1]);
        if (n > 1 ? where[i] != i || !row_major : !row_major) return declined();
    }
    PyArrayObject *mask = (PyArrayObject *)items[1];
    if (n == 1 && contiguous && PyArray_TYPE(mask) == NPY_BOOL &&
        PyArray_NDIM(mask) == PyArray_NDIM(x) && is_movable(items[0]) &&
        PyArray_CompareLists(PyArray_DIMS(mask), PyArray_DIMS(x), PyArray_NDIM(x))) {
        PyObject *found = masked(x, mask);
        if (found != Py_NotImplemented) return found;
        Py_DECREF(found);
    }
    Target target = target_of(x);
    Places places;
    if (!places.read(target, items + 1, n, where)) return declined();
    return (PyObject *)take(target, places, x);
}

// index_put(arrays, where, accumulate): a copy of the first array with the second where the others
// index.
static PyObject *index_put(PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *items[MAX_INDICES + 2];
    int where[MAX_INDICES];
    int n = names || count != 3 ? -1 : read(args[0], args[1], 2, items, where);
    if (n < 0 || !is_movable(items[1])) return declined();
    PyArrayObject *x = (PyArrayObject *)items[0], *values = (PyArrayObject *)items[1];
    DType type = dtype_of(PyArray_TYPE(x));
    if (PyArray_DESCR(x) != PyArray_DESCR(values) || type == U2 || type == U4 || type == U8)
        return declined();
    Target target = target_of(x);
    Places places;
    if (!places.read(target, items + 2, n, where)) return declined();
    PyArrayObject *result = to_update(x);
    if (!result) return nullptr;
    target = target_of(result);
    if (!PyArray_IS_C_CONTIGUOUS(x)) {  // the copy lies otherwise in memory
        places = Places();
        places.read(target, items + 2, n, where);
    }
    if (put(target, places, values, args[2] == Py_True)) return (PyObject *)result;
    Py_DECREF(result);
    return declined();
}

}  // namespace moving

int register_places_kernels(PyObject *module) {
    return make_function(module, "index", moving::index) ||
                   make_function(module, "index_put", moving::index_put)
               ? -1
               : 0;
}
