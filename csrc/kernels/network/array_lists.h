// Lists of arrays whose elements are updated in one loop over all of them.
#pragma once
#include <algorithm>
#include <vector>

#include "common.h"
#include "parallel.h"

// The arrays of a list that lie densely and have one type.
struct Arrays {
    std::vector<char *> data;
    std::vector<npy_intp> sizes;
    std::vector<PyArrayObject *> arrays;

    bool take(PyObject *list, int type) {
        if (!PyList_CheckExact(list) && !PyTuple_CheckExact(list)) return false;
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list); i++) {
            PyObject *item = PySequence_Fast_GET_ITEM(list, i);
            if (!PyArray_CheckExact(item)) return false;
            PyArrayObject *a = (PyArrayObject *)item;
            if (PyArray_TYPE(a) != type || !PyArray_ISCARRAY(a)) return false;
            data.push_back(PyArray_BYTES(a)), sizes.push_back(PyArray_SIZE(a)), arrays.push_back(a);
        }
        return true;
    }
    bool fits(const Arrays &other) const { return sizes == other.sizes; }
    bool has_shapes_of(const Arrays &other) const {
        return fits(other) && std::equal(arrays.begin(), arrays.end(), other.arrays.begin(),
                                         [](PyArrayObject *a, PyArrayObject *b) { return PyArray_SAMESHAPE(a, b); });
    }
};

// Does each target lie apart from all other arrays, but for the one of its own place in `others`, with
// which it may share all of its memory? Then the order of the loops does not matter.
inline bool lie_apart(const Arrays &targets, const Arrays &others, size_t item) {
    struct Range {
        char *begin, *end;
        size_t which;
        bool target;
    };
    std::vector<Range> ranges;
    for (const Arrays *arrays : {&targets, &others})
        for (size_t i = 0; i < arrays->data.size(); i++)
            if (arrays->sizes[i])
                ranges.push_back({arrays->data[i], arrays->data[i] + arrays->sizes[i] * item, i, arrays == &targets});
    std::sort(ranges.begin(), ranges.end(), [](const Range &a, const Range &b) { return a.begin < b.begin; });
    Range last{nullptr, nullptr, 0, false}, target = last;   // those that reach farthest
    for (const Range &r : ranges) {
        for (const Range &other : {last, target}) {
            bool own = r.which == other.which && r.target != other.target && r.begin == other.begin;
            if (r.begin < other.end && (r.target || other.target) && !own) return false;
        }
        if (r.end > last.end) last = r;
        if (r.target && r.end > target.end) target = r;
    }
    return true;
}

inline int type_of(PyObject *list) {
    bool listed = PyList_CheckExact(list) || PyTuple_CheckExact(list);
    PyObject *first = listed && PySequence_Fast_GET_SIZE(list) ? PySequence_Fast_GET_ITEM(list, 0) : nullptr;
    return first && PyArray_CheckExact(first) ? PyArray_TYPE((PyArrayObject *)first) : NPY_NOTYPE;
}

// body(which array, begin, end) for pieces of all arrays.
template <class Body>
void over_all(const std::vector<npy_intp> &sizes, Body body) {
    struct Piece {
        int which;
        npy_intp begin, end;
    };
    std::vector<Piece> pieces;
    int64_t total = 0;
    for (size_t i = 0; i < sizes.size(); i++) {
        for (npy_intp at = 0; at < sizes[i]; at += PARALLEL_FROM)
            pieces.push_back({int(i), at, sizes[i] - at < PARALLEL_FROM ? sizes[i] : npy_intp(at + PARALLEL_FROM)});
        total += sizes[i];
    }
    auto run = [&](int64_t i) { body(pieces[i].which, pieces[i].begin, pieces[i].end); };
    int threads = total < 2 * PARALLEL_FROM || in_parallel() ? 1 : max_threads();
    if (threads > 1)
        run_in_pool(threads, int64_t(pieces.size()),
                    [](const void *work, int64_t i) { (*(decltype(run) *)work)(i); }, &run);
    else
        for (size_t i = 0; i < pieces.size(); i++) run(int64_t(i));
}

// The counters of steps, arrays without dimensions; false: one is something else.
inline bool take_steps(PyObject *list, size_t count, std::vector<PyArrayObject *> &steps) {
    if (!PyList_CheckExact(list) && !PyTuple_CheckExact(list)) return false;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(list, i);
        if (!PyArray_CheckExact(item)) return false;
        PyArrayObject *a = (PyArrayObject *)item;
        int type = PyArray_TYPE(a);
        if ((type != NPY_FLOAT && type != NPY_DOUBLE) || PyArray_NDIM(a) || !PyArray_ISBEHAVED(a)) return false;
        steps.push_back(a);
    }
    return steps.size() == count;
}

inline double advance(PyArrayObject *step) {
    if (PyArray_TYPE(step) == NPY_FLOAT) return *(float *)PyArray_DATA(step) += 1;
    return *(double *)PyArray_DATA(step) += 1;
}
