#include "kernels/moving/strided.h"

#include "parallel.h"

namespace moving {

void Range::simplify() {
    int kept = 0;
    for (int d = 0; d < nd; d++) {
        if (shape[d] == 1) continue;
        if (kept && to[kept - 1] == to[d] * shape[d] && from[kept - 1] == from[d] * shape[d]) {
            shape[kept - 1] *= shape[d], to[kept - 1] = to[d], from[kept - 1] = from[d];
            continue;
        }
        shape[kept] = shape[d], to[kept] = to[d], from[kept] = from[d];
        kept++;
    }
    nd = kept;
}

// body(to, from) for each row: for each place in all dimensions but the last.
template <class Body>
static INLINE void for_rows(const Range &r, char *to, const char *from, Body body) {
    npy_intp at[NPY_MAXDIMS] = {};
    for (;;) {
        body(to, from);
        int d = r.nd - 2;
        for (; d >= 0; d--) {
            to += r.to[d], from += r.from[d];
            if (++at[d] < r.shape[d]) break;
            to -= r.to[d] * r.shape[d], from -= r.from[d] * r.shape[d];
            at[d] = 0;
        }
        if (d < 0) return;
    }
}

// The row that ends at `from`, backwards.
template <class T>
CLONES void copy_backwards(char *to, const char *from, npy_intp n) {
    T *p = (T *)to;
    const T *q = (const T *)from - (n - 1);
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) p[i] = q[n - 1 - i];
}

template <class T>
CLONES void copy_every_second(char *to, const char *from, npy_intp n) {
    T *p = (T *)to;
    const T *q = (const T *)from;
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) p[i] = q[2 * i];
}

static void copy_part(const Range &r, char *to, const char *from, npy_intp item) {
    npy_intp n = r.shape[r.nd - 1], step = r.to[r.nd - 1], other = r.from[r.nd - 1];
    if (step == item && other == item) {
        switch (n * item) {  // short rows, without a call for each
            case 16: return for_rows(r, to, from, [](char *p, const char *q) { std::memcpy(p, q, 16); });
            case 32: return for_rows(r, to, from, [](char *p, const char *q) { std::memcpy(p, q, 32); });
            case 64: return for_rows(r, to, from, [](char *p, const char *q) { std::memcpy(p, q, 64); });
            case 128: return for_rows(r, to, from, [](char *p, const char *q) { std::memcpy(p, q, 128); });
        }
        for_rows(r, to, from, [=](char *p, const char *q) { std::memcpy(p, q, n * item); });
        return;
    }
    bool known = with_size(item, [&](auto type) {
        using T = decltype(type);
        if (step == item && other == 2 * item)
            return for_rows(r, to, from, [=](char *p, const char *q) { copy_every_second<T>(p, q, n); });
        if (step == item && other == -item)
            return for_rows(r, to, from, [=](char *p, const char *q) { copy_backwards<T>(p, q, n); });
        for_rows(r, to, from, [=](char *p, const char *q) {
            for (npy_intp i = 0; i < n; i++)
                std::memcpy(p + i * step, q + i * other, sizeof(T));
        });
    });
    if (!known)
        for_rows(r, to, from, [=](char *p, const char *q) {
            for (npy_intp i = 0; i < n; i++) std::memcpy(p + i * step, q + i * other, item);
        });
}

void copy(Range r, char *to, const char *from, npy_intp item) {
    r.simplify();
    npy_intp size = r.size();
    if (!size) return;
    if (!r.nd) {
        std::memcpy(to, from, item);
        return;
    }
    if (size < PARALLEL_FROM) return copy_part(r, to, from, item);
    parallel_for(r.shape[0], PARALLEL_FROM / 2 / (size / r.shape[0]) + 1, [&](int64_t begin, int64_t end) {
        Range part = r;
        part.shape[0] = end - begin;
        copy_part(part, to + begin * r.to[0], from + begin * r.from[0], item);
    }, 1);
}

template <class T>
CLONES void fill_row(T *to, T element, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) to[i] = element;
}

void fill(Range r, char *to, const char *value, npy_intp item) {
    for (int d = 0; d < r.nd; d++) r.from[d] = 0;
    for (int d = 0; d < r.nd; d++)
        if (r.shape[d] == 0) return;
    // Merged by the strides of `to` alone.
    int kept = 0;
    for (int d = 0; d < r.nd; d++) {
        if (r.shape[d] == 1) continue;
        if (kept && r.to[kept - 1] == r.to[d] * r.shape[d]) {
            r.shape[kept - 1] *= r.shape[d], r.to[kept - 1] = r.to[d];
            continue;
        }
        r.shape[kept] = r.shape[d], r.to[kept] = r.to[d], r.from[kept] = 0;
        kept++;
    }
    r.nd = kept;
    if (!kept) {
        std::memcpy(to, value, item);
        return;
    }
    npy_intp n = r.shape[kept - 1], step = r.to[kept - 1];
    bool known = with_size(item, [&](auto type) {
        using T = decltype(type);
        T element;
        std::memcpy(&element, value, sizeof(T));
        if (kept == 1 && step == npy_intp(sizeof(T)) && n >= PARALLEL_FROM)
            return parallel_for(n, PARALLEL_FROM, [&](int64_t begin, int64_t end) {
                fill_row((T *)to + begin, element, end - begin);
            });
        for_rows(r, to, value, [=](char *p, const char *) {
            if (step == npy_intp(sizeof(T)))
                fill_row((T *)p, element, n);
            else
                for (npy_intp i = 0; i < n; i++) std::memcpy(p + i * step, &element, sizeof(T));
        });
    });
    if (!known)
        for_rows(r, to, value, [=](char *p, const char *) {
            for (npy_intp i = 0; i < n; i++) std::memcpy(p + i * step, value, item);
        });
}

static void bounds(PyArrayObject *x, const char *&low, const char *&high) {
    low = high = PyArray_BYTES(x);
    for (int d = 0; d < PyArray_NDIM(x); d++) {
        npy_intp reach = (PyArray_DIM(x, d) - 1) * PyArray_STRIDE(x, d);
        (reach < 0 ? low : high) += reach;
    }
    high += PyArray_ITEMSIZE(x);
}

bool may_overlap(PyArrayObject *a, PyArrayObject *b) {
    if (!PyArray_SIZE(a) || !PyArray_SIZE(b)) return false;
    const char *low, *high, *other_low, *other_high;
    bounds(a, low, high), bounds(b, other_low, other_high);
    return low < other_high && other_low < high;
}

PyArrayObject *copied(PyArrayObject *x) {
    PyArrayObject *r = empty(x, PyArray_NDIM(x), PyArray_DIMS(x));
    if (!r) return nullptr;
    Range range;
    for (int d = 0; d < PyArray_NDIM(x); d++)
        range.add(PyArray_DIM(x, d), PyArray_STRIDE(r, d), PyArray_STRIDE(x, d));
    copy(range, PyArray_BYTES(r), PyArray_BYTES(x), PyArray_ITEMSIZE(x));
    return r;
}

static thread_local PyArrayObject *written = nullptr;

Writing::Writing(PyArrayObject *to) : before(written) { written = to; }
Writing::~Writing() { written = before; }

static bool is_written(PyArrayObject *x) {
    if (x != written || !PyArray_IS_C_CONTIGUOUS(x)) return false;
    written = nullptr;
    Py_INCREF(x);
    return true;
}

PyArrayObject *to_update(PyArrayObject *x) { return is_written(x) ? x : copied(x); }

PyArrayObject *to_overwrite(PyArrayObject *x) {
    return is_written(x) ? x : empty(x, PyArray_NDIM(x), PyArray_DIMS(x));
}

int read_ints(PyObject *tuple, npy_intp *to) {
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) > NPY_MAXDIMS) return -1;
    int n = int(PyTuple_GET_SIZE(tuple));
    for (int i = 0; i < n; i++) {
        if (!PyLong_Check(PyTuple_GET_ITEM(tuple, i))) return -1;
        to[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i));
        if (to[i] == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return -1;
        }
    }
    return n;
}

}  // namespace moving
