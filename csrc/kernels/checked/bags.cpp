// Rows of a table by number: embeddings, sums of them, and one-hot vectors. flambeau/ops/embedding.py
#include "kernels/checked/checked.h"

namespace checked {

static PyArrayObject *integers(PyObject *x) {
    bool fits = network::is_int64(type_of(x)) && PyArray_IS_C_CONTIGUOUS((PyArrayObject *)x);
    return fits ? (PyArrayObject *)x : nullptr;
}

// Numbers in one dimension, one after another: those that lie apart are copied.
static Array list_of(PyObject *x) {
    bool fits = network::is_int64(type_of(x)) && PyArray_NDIM((PyArrayObject *)x) == 1;
    return Array(fits ? (PyObject *)PyArray_GETCONTIGUOUS((PyArrayObject *)x) : nullptr);
}

struct Bags {
    npy_intp rows, width, n, count;
    int mode;
    int64_t padding;
    const int64_t *indices, *offsets;

    npy_intp end(npy_intp bag, bool last) const { return bag + 1 < count || last ? offsets[bag + 1] : n; }
};

// Adds columns of the rows [first, last) of a bag, as long as there are `some`: their sums stay in
// registers.
template <int some, class T>
INLINE npy_intp add_columns(const Bags &g, npy_intp first, npy_intp last, npy_intp k, const T *table,
                            const T *weights, T *to) {
    for (; k + some <= g.width; k += some) {
        T sums[some] = {};
        for (npy_intp i = first; i < last; i++) {
            if (g.indices[i] == g.padding) continue;
            const T *row = table + g.indices[i] * g.width + k;
            T w = weights ? weights[i] : T(1);
            for (int j = 0; j < some; j++) sums[j] += row[j] * w;
        }
        for (int j = 0; j < some; j++) to[k + j] = sums[j];
    }
    return k;
}

// The sums, means or maxima, with each index's bag, the bags' sizes, and where the maxima were.
template <class T>
CLONES void add_up(const Bags &g, npy_intp first, npy_intp end_bag, bool last, const T *table, const T *weights,
                   T *result, int64_t *bag_of, int64_t *sizes, int64_t *places) {
    for (npy_intp bag = first; bag < end_bag; bag++) {
        npy_intp used = 0;
        T *to = result + bag * g.width;
        int64_t *where = places ? places + bag * g.width : nullptr;
        if (where) std::fill(to, to + g.width, T(0)), std::fill(where, where + g.width, int64_t(-1));
        npy_intp begin = g.offsets[bag], end = g.end(bag, last);
        if (bag_of) std::fill(bag_of + begin, bag_of + end, int64_t(bag));
        for (npy_intp i = begin; i < end && g.mode != 2; i++) used += g.indices[i] != g.padding;
        if (g.mode != 2) {
            npy_intp k = add_columns<256 / sizeof(T)>(g, begin, end, 0, table, weights, to);
            k = add_columns<64 / sizeof(T)>(g, begin, end, k, table, weights, to);
            add_columns<1>(g, begin, end, k, table, weights, to);
        }
        for (npy_intp i = begin; i < end && g.mode == 2; i++) {
            const int64_t index = g.indices[i];
            if (index == g.padding) continue;
            const T *row = table + index * g.width;
            INDEPENDENT
            for (npy_intp k = 0; k < g.width; k++) {
                bool better = !used | (row[k] > to[k]);
                to[k] = better ? row[k] : to[k], where[k] = better ? index : where[k];
            }
            used++;
        }
        sizes[bag] = used;
        if (g.mode == 1 && used)
            for (npy_intp k = 0; k < g.width; k++) to[k] /= T(used);
    }
}

static PyObject *copied(PyArrayObject *a) { return PyArray_NewCopy(a, NPY_CORDER); }

// (weight, indices, offsets, per_sample_weights, scale_grad_by_freq, mode, sparse,
// include_last_offset, padding_idx)
static PyObject *embedding_bag(PyObject *const *args) {
    PyArrayObject *table = floats(args[0]), *weights = (PyArrayObject *)args[3];
    Array indices = list_of(args[1]), offsets = list_of(args[2]);
    npy_intp mode, padding;
    bool last = args[7] == Py_True, weighted = args[3] != Py_None;
    if (!table || !indices || !offsets || PyArray_NDIM(table) != 2 ||
        !PyArray_IS_C_CONTIGUOUS(table) || !take_int(args[5], mode) ||
        !take_int(args[8], padding) || mode < 0 || mode > 2 || offsets.dim(0) < 1 + last ||
        (weighted && (type_of(args[3]) != PyArray_TYPE(table) || PyArray_NDIM(weights) != 1 ||
                      PyArray_DIM(weights, 0) != indices.dim(0) || mode ||
                      !PyArray_IS_C_CONTIGUOUS(weights))))
        return moving::misfit();
    Bags g = {PyArray_DIM(table, 0), PyArray_DIM(table, 1), indices.dim(0),
              offsets.dim(0) - last, int(mode), padding, indices.data<int64_t>(),
              offsets.data<int64_t>()};
    npy_intp given = offsets.dim(0);
    if (last && g.offsets[g.count] != g.n) return moving::misfit();
    bool fits = !g.offsets[0] && g.offsets[given - 1] <= g.n;
    for (npy_intp i = 1; i < given; i++) fits &= g.offsets[i - 1] <= g.offsets[i];
    for (npy_intp i = 0; i < g.n; i++) fits &= uint64_t(g.indices[i]) < uint64_t(g.rows);
    if (!fits) return moving::misfit();
    npy_intp shape[] = {g.count, g.width}, none = 0;
    int type = PyArray_TYPE(table);
    Array result = Array::empty(2, shape, type),
          bag_of = Array::empty(1, mode ? &g.n : &none, NPY_INT64),
          sizes = Array::empty(1, &g.count, NPY_INT64),
          where = mode == 2 ? Array::empty(2, shape, NPY_INT64) : Array(copied(offsets.array()));
    if (!result || !bag_of || !sizes || !where) return nullptr;
    {
        network::Unlocked unlocked(g.n * g.width > PARALLEL_FROM);
        int64_t *bags = mode ? bag_of.data<int64_t>() : nullptr,
                *at = mode == 2 ? where.data<int64_t>() : nullptr;
        const void *w = weighted ? PyArray_DATA(weights) : nullptr;
        npy_intp each = g.n * g.width / g.count + 1;
        parallel_for(g.count, PARALLEL_FROM / 2 / each + 1, [&](int64_t begin, int64_t end) {
            if (type == NPY_FLOAT)
                add_up(g, begin, end, last, (const float *)PyArray_DATA(table), (const float *)w,
                       result.data<float>(), bags, sizes.data<int64_t>(), at);
            else
                add_up(g, begin, end, last, (const double *)PyArray_DATA(table), (const double *)w,
                       result.data<double>(), bags, sizes.data<int64_t>(), at);
        });
    }
    if (mode) return network::results(result, bag_of, sizes, where);
    Array starts(copied(offsets.array()));
    return starts ? network::results(result, bag_of, starts, where) : nullptr;
}

// (weight, indices, …): what else it takes is for the gradient
static Inner rows_of{"network_embedding"};
static PyObject *embedding(PyObject *const *args) {
    bool fits = PyArray_CheckExact(args[0]) && PyArray_NDIM((PyArrayObject *)args[0]) == 2 &&
                network::is_int64(type_of(args[1]));
    return fits ? rows_of(args, 2) : moving::misfit();
}

// (self, num_classes)
static PyObject *one_hot(PyObject *const *args) {
    PyArrayObject *x = integers(args[0]);
    npy_intp classes, n = x ? PyArray_SIZE(x) : 0;
    if (!n || PyArray_NDIM(x) >= NPY_MAXDIMS / 2 || !take_int(args[1], classes) || classes < -1)
        return moving::misfit();
    const int64_t *at = (const int64_t *)PyArray_DATA(x);
    int64_t least = at[0], most = at[0];
    for (npy_intp i = 1; i < n; i++) least = std::min(least, at[i]), most = std::max(most, at[i]);
    if (classes == -1) classes = most + 1;
    if (least < 0 || most >= classes) return moving::misfit();
    std::vector<npy_intp> shape(PyArray_DIMS(x), PyArray_DIMS(x) + PyArray_NDIM(x));
    shape.push_back(classes);
    Array result = Array::zeros(shape, NPY_INT64);
    if (!result) return nullptr;
    for (npy_intp i = 0; i < n; i++) result.data<int64_t>()[i * classes + at[i]] = 1;
    return result.release();
}

static PyMethodDef methods[] = {CHECKED_METHOD(embedding_bag, 9), CHECKED_METHOD(embedding, 5),
                                CHECKED_METHOD(one_hot, 2), {nullptr, nullptr, 0, nullptr}};

int register_bags(PyObject *module) {
    return rows_of.find(module) < 0 ? -1 : PyModule_AddFunctions(module, methods);
}

}  // namespace checked
