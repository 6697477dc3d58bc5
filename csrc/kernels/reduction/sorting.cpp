// Sorting and its kin: flambeau/kernels/reduction/sorting.py.
//
// Elements become unsigned keys of the same order, in which NaN is the greatest and -0 equals 0.
// Keys are sorted together with positions by their bytes (least significant first), which keeps
// ties in order; bytes that all keys share are skipped. Medians compare keys and positions as pairs,
// so ties go to the first; which of equal elements `topk`, `kthvalue` and `mode` find is as torch
// has it.
#include "kernels/network/module.h"

namespace network {

namespace {

INLINE uint32_t key_of(float x) {
    x = x == 0 ? 0.0f : x;
    uint32_t u = bits<uint32_t>(x), sign = uint32_t(int32_t(u) >> 31) | 0x80000000u;
    return x != x ? ~uint32_t(0) : u ^ sign;
}
INLINE uint64_t key_of(double x) {
    x = x == 0 ? 0.0 : x;
    uint64_t u = bits<uint64_t>(x), sign = uint64_t(int64_t(u) >> 63) | (uint64_t(1) << 63);
    return x != x ? ~uint64_t(0) : u ^ sign;
}
INLINE uint64_t key_of(int64_t x) { return uint64_t(x) ^ (uint64_t(1) << 63); }
INLINE uint64_t key_of(uint64_t x) { return x; }
INLINE uint32_t key_of(int32_t x) { return uint32_t(x) ^ 0x80000000u; }
INLINE uint32_t key_of(int16_t x) { return uint32_t(int32_t(x) + 32768); }
INLINE uint32_t key_of(int8_t x) { return uint32_t(int32_t(x) + 128); }
INLINE uint32_t key_of(uint8_t x) { return x; }

// A key and the position it came from. With 32 bits each both fit a machine word.
template <class Key>
struct Item;
template <>
struct Item<uint32_t> {
    uint64_t both;
    static INLINE Item make(uint32_t key, uint32_t at) { return {uint64_t(key) << 32 | at}; }
    INLINE uint32_t key() const { return uint32_t(both >> 32); }
    INLINE int64_t at() const { return uint32_t(both); }
    INLINE bool operator<(const Item &other) const { return both < other.both; }
};
template <>
struct Item<uint64_t> {
    uint64_t value;
    int64_t position;
    static INLINE Item make(uint64_t key, int64_t at) { return {key, at}; }
    INLINE uint64_t key() const { return value; }
    INLINE int64_t at() const { return position; }
    INLINE bool operator<(const Item &other) const {
        return value != other.value ? value < other.value : position < other.position;
    }
};

template <class T>
using KeyOf = decltype(key_of(T()));

// One line of elements, `step` apart, as items; reversed order by inverted keys.
template <class T>
CLONES void load_items(const T *x, npy_intp step, npy_intp n, bool reverse, Item<KeyOf<T>> *items) {
    using Key = KeyOf<T>;
    Key flip = reverse ? ~Key(0) : Key(0);
    for (npy_intp i = 0; i < n; i++) items[i] = Item<Key>::make(key_of(x[i * step]) ^ flip, i);
}

// Sorts by bytes; `spare` is as long as `items`. Returns where the result is.
template <class Key>
Item<Key> *radix_sort(Item<Key> *items, Item<Key> *spare, npy_intp n) {
    constexpr int digits = sizeof(Key);
    if (n < 48) {
        std::sort(items, items + n);
        return items;
    }
    std::vector<uint32_t> memory(digits * 256, 0);
    uint32_t *counts = memory.data();
    for (npy_intp i = 0; i < n; i++) {
        Key key = items[i].key();
        for (int d = 0; d < digits; d++) counts[d * 256 + (key >> (8 * d) & 255)]++;
    }
    for (int d = 0; d < digits; d++) {
        uint32_t *count = counts + d * 256;
        if (count[items[0].key() >> (8 * d) & 255] == uint32_t(n)) continue;
        uint32_t start = 0;
        for (int b = 0; b < 256; b++) {
            uint32_t here = count[b];
            count[b] = start;
            start += here;
        }
        for (npy_intp i = 0; i < n; i++) spare[count[items[i].key() >> (8 * d) & 255]++] = items[i];
        std::swap(items, spare);
    }
    return items;
}

// Calls body(T()) for a type that has keys.
template <class Body>
bool with_keys(int type, Body body) {
    switch (dtype_of(type)) {
        case F4: body(float()); return true;
        case F8: body(double()); return true;
        case I8: body(int64_t()); return true;
        case U8: body(uint64_t()); return true;
        case I4: body(int32_t()); return true;
        case I2: body(int16_t()); return true;
        case I1: body(int8_t()); return true;
        case U1:
        case B1: body(uint8_t()); return true;
        default: return false;
    }
}

// Calls each(x, values, indices, step of x, step of the results, items, spare) for every line along
// the axis.
template <class T, class Each>
void each_line(const Axis &a, npy_intp kept, const T *x, T *values, int64_t *indices, npy_intp work,
               Each each) {
    using I = Item<KeyOf<T>>;
    parallel_for(
        a.outer * a.inner, std::max<npy_intp>(1, PARALLEL_FROM / 4 / (work + 1)),
        [&](int64_t first, int64_t last) {
            Buffer<I> items(a.n), spare(a.n);
            for (npy_intp line = first; line < last; line++) {
                npy_intp o = line / a.inner, j = line % a.inner;
                npy_intp to = o * kept * a.inner + j;
                each(x + o * a.n * a.inner + j, values + to, indices + to, items.get(),
                     spare.get());
            }
        },
        1);
}

// (x, axis, descending, stable): of arrays that are not row-major the twin does it
PyObject *sort(PyObject *const *args) {
    Array x;
    Axis a;
    int reverse = PyObject_IsTrue(args[2]);
    if (!is_plain_array(args[0]) || !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)args[0]) ||
        !PyArray_SIZE((PyArrayObject *)args[0]) || !take_any(args[0], x) || !a.read_row(x, args[1]) ||
        a.n >= npy_intp(1) << 32)
        return declined();
    Array values = Array::empty(x.dims(), PyArray_TYPE(x.array())),
          indices = Array::empty(x.dims(), NPY_INT64);
    if (!values || !indices) return nullptr;
    bool done;
    {
        Unlocked unlocked(x.size() >= PARALLEL_FROM);
        done = with_keys(PyArray_TYPE(x.array()), [&](auto zero) {
            using T = decltype(zero);
            each_line(a, a.n, x.data<T>(), values.data<T>(), indices.data<int64_t>(), 16 * a.n,
                      [&](const T *from, T *v, int64_t *at, Item<KeyOf<T>> *items,
                          Item<KeyOf<T>> *spare) {
                          load_items(from, a.inner, a.n, reverse, items);
                          items = radix_sort(items, spare, a.n);
                          for (npy_intp i = 0; i < a.n; i++) {
                              int64_t p = items[i].at();
                              at[i * a.inner] = p;
                              v[i * a.inner] = from[p * a.inner];
                          }
                      });
        });
    }
    return done ? results(values, indices) : declined();
}

// The k first items, in order if `sorted`, by the algorithms whose order of equal elements torch's
// results show.
template <class I, class Before>
void first_items(I *items, npy_intp n, npy_intp k, bool sorted, Before before) {
    if (k * 64 <= n) {
        std::partial_sort(items, items + k, items + n, before);
        return;
    }
    std::nth_element(items, items + k - 1, items + n, before);
    if (sorted) std::sort(items, items + k - 1, before);
}

// Quickselect with the median of three in front (Numerical Recipes, 8.5): brings the item of rank k
// to its place.
template <class I>
void quick_select(I *items, npy_intp n, npy_intp k) {
    auto above = [](const I &a, const I &b) { return a.key() > b.key(); };
    auto order = [&](npy_intp i, npy_intp j) {
        if (above(items[i], items[j])) std::swap(items[i], items[j]);
    };
    npy_intp low = 0, high = n - 1;
    while (high > low + 1) {
        std::swap(items[low + (high - low) / 2], items[low + 1]);
        order(low + 1, high);
        order(low, high);
        order(low + 1, low);
        I pivot = items[low];
        npy_intp i = low + 1, j = high;
        for (;;) {
            do i++;
            while (above(pivot, items[i]));
            do j--;
            while (above(items[j], pivot));
            if (j < i) break;
            std::swap(items[i], items[j]);
        }
        std::swap(items[low], items[j]);
        if (j <= k) low = i;
        if (j >= k) high = j - 1;
    }
    if (high == low + 1) order(low, high);
}

PyObject *topk(PyObject *const *args) {
    Array x;
    Axis a;
    npy_intp k;
    int largest = PyObject_IsTrue(args[3]), sorted = PyObject_IsTrue(args[4]);
    if (!take_any(args[0], x) || !take_int(args[1], k) || !a.read_row(x, args[2]) || k < 1 || k > a.n ||
        a.n >= npy_intp(1) << 32)
        return declined();
    std::vector<npy_intp> shape = x.dims();
    npy_intp axis = PyLong_AsSsize_t(args[2]);
    if (x.ndim()) shape[axis < 0 ? axis + x.ndim() : axis] = k;
    Array values = Array::empty(shape, PyArray_TYPE(x.array())),
          indices = Array::empty(shape, NPY_INT64);
    if (!values || !indices) return nullptr;
    bool done;
    {
        Unlocked unlocked(x.size() >= PARALLEL_FROM);
        done = with_keys(PyArray_TYPE(x.array()), [&](auto zero) {
            using T = decltype(zero);
            each_line(
                a, k, x.data<T>(), values.data<T>(), indices.data<int64_t>(), 2 * a.n,
                [&](const T *from, T *v, int64_t *at, Item<KeyOf<T>> *items, Item<KeyOf<T>> *) {
                    using I = Item<KeyOf<T>>;
                    load_items(from, a.inner, a.n, largest, items);
                    first_items(items, a.n, k, sorted,
                                [](const I &x, const I &y) { return x.key() < y.key(); });
                    for (npy_intp i = 0; i < k; i++) {
                        int64_t p = items[i].at();
                        at[i * a.inner] = p;
                        v[i * a.inner] = from[p * a.inner];
                    }
                });
        });
    }
    return done ? results(values, indices) : declined();
}

std::vector<npy_intp> shape_without(const Array &x, PyObject *axis_, bool keep) {
    std::vector<npy_intp> shape = x.dims();
    npy_intp axis = PyLong_AsSsize_t(axis_);
    if (!x.ndim()) return shape;
    if (axis < 0) axis += x.ndim();
    if (keep)
        shape[axis] = 1;
    else
        shape.erase(shape.begin() + axis);
    return shape;
}

enum Which { KTH, MEDIAN, NANMEDIAN };

// One element of each line, by its rank.
PyObject *select(PyObject *x_, PyObject *axis_, PyObject *keep_, npy_intp rank, Which which) {
    Array x;
    Axis a;
    int keep = PyObject_IsTrue(keep_);
    if (!take_any(x_, x) || !a.read_row(x, axis_) || a.n < 1 || rank >= a.n || a.n >= npy_intp(1) << 32)
        return declined();
    std::vector<npy_intp> shape = shape_without(x, axis_, keep);
    Array values = Array::empty(shape, PyArray_TYPE(x.array())),
          indices = Array::empty(shape, NPY_INT64);
    if (!values || !indices) return nullptr;
    bool done;
    {
        Unlocked unlocked(x.size() >= PARALLEL_FROM);
        done = with_keys(PyArray_TYPE(x.array()), [&](auto zero) {
            using T = decltype(zero);
            each_line(
                a, 1, x.data<T>(), values.data<T>(), indices.data<int64_t>(), 4 * a.n,
                [&](const T *from, T *v, int64_t *at, Item<KeyOf<T>> *items, Item<KeyOf<T>> *) {
                    load_items(from, a.inner, a.n, false, items);
                    npy_intp nans = 0, place = rank, first = -1;
                    if (which != KTH && std::numeric_limits<T>::has_quiet_NaN)
                        for (npy_intp i = 0; i < a.n; i++)
                            if (from[i * a.inner] != from[i * a.inner]) {
                                if (nans++ == 0) first = i;
                            }
                    if (which == MEDIAN && nans) {
                        *at = first;
                    } else {
                        if (which != KTH)
                            place =
                                (std::max<npy_intp>(a.n - (which == NANMEDIAN ? nans : 0), 1) - 1) /
                                2;
                        if (which == KTH)
                            quick_select(items, a.n, place);
                        else
                            std::nth_element(items, items + place, items + a.n);
                        *at = items[place].at();
                    }
                    *v = from[*at * a.inner];
                });
        });
    }
    return done ? results(values, indices) : declined();
}

PyObject *kthvalue(PyObject *const *args) {
    npy_intp k;
    if (!take_int(args[1], k) || k < 1) return declined();
    return select(args[0], args[2], args[3], k - 1, KTH);
}

PyObject *median(PyObject *const *args) { return select(args[0], args[1], args[2], 0, MEDIAN); }

PyObject *nanmedian(PyObject *const *args) {
    return select(args[0], args[1], args[2], 0, NANMEDIAN);
}

// Of all elements: the value alone.
PyObject *of_all(PyObject *x, Which which) {
    if (!is_plain_array(x)) return declined();
    Array flat(PyArray_Ravel((PyArrayObject *)x, NPY_CORDER));
    Array axis(PyLong_FromLong(0));
    if (!flat || !axis) return nullptr;
    PyObject *found = select((PyObject *)flat.array(), (PyObject *)axis.array(), Py_False, 0, which);
    if (!found || found == Py_NotImplemented) return found;
    PyObject *value = PyTuple_GET_ITEM(found, 0);
    Py_INCREF(value);
    Py_DECREF(found);
    return value;
}
PyObject *median_all(PyObject *const *args) { return of_all(args[0], MEDIAN); }
PyObject *nanmedian_all(PyObject *const *args) { return of_all(args[0], NANMEDIAN); }

template <class T>
bool has_nan(const T *x, npy_intp n) {
    if (std::numeric_limits<T>::has_quiet_NaN)
        for (npy_intp i = 0; i < n; i++)
            if (x[i] != x[i]) return true;
    return false;
}

// The last of the longest run of equal items, the first such run; not among NaN, which `std::sort`
// may not be given.
PyObject *mode(PyObject *const *args) {
    Array x;
    Axis a;
    int keep = PyObject_IsTrue(args[2]);
    if (!take_any(args[0], x) || !a.read_row(x, args[1]) || a.n < 1 || a.n >= npy_intp(1) << 32)
        return declined();
    std::vector<npy_intp> shape = shape_without(x, args[1], keep);
    Array values = Array::empty(shape, PyArray_TYPE(x.array())),
          indices = Array::empty(shape, NPY_INT64);
    if (!values || !indices) return nullptr;
    bool done = true;
    {
        Unlocked unlocked(x.size() >= PARALLEL_FROM);
        done = with_keys(PyArray_TYPE(x.array()), [&](auto zero) {
            using T = decltype(zero);
            done = !has_nan(x.data<T>(), a.outer * a.n * a.inner);
            if (!done) return;
            each_line(
                a, 1, x.data<T>(), values.data<T>(), indices.data<int64_t>(), 16 * a.n,
                [&](const T *from, T *v, int64_t *at, Item<KeyOf<T>> *items, Item<KeyOf<T>> *) {
                    using I = Item<KeyOf<T>>;
                    load_items(from, a.inner, a.n, false, items);
                    std::sort(items, items + a.n,
                              [](const I &x, const I &y) { return x.key() < y.key(); });
                    npy_intp run = 0, most = 0;
                    for (npy_intp i = 0; i < a.n; i++) {
                        run++;
                        if (i + 1 < a.n && items[i].key() == items[i + 1].key()) continue;
                        if (run > most) *at = items[i].at(), most = run;
                        run = 0;
                    }
                    *v = from[*at * a.inner];
                });
        }) && done;
    }
    return done ? results(values, indices) : declined();
}

PyMethodDef methods[] = {NETWORK_METHOD(sort, 4),      NETWORK_METHOD(topk, 5),
                         NETWORK_METHOD(kthvalue, 4),  NETWORK_METHOD(median, 3),
                         NETWORK_METHOD(nanmedian, 3), NETWORK_METHOD(mode, 3),
                         NETWORK_METHOD(median_all, 1), NETWORK_METHOD(nanmedian_all, 1),
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

}  // namespace network

int register_network_sorting(PyObject *module) {
    return PyModule_AddFunctions(module, network::methods);
}
