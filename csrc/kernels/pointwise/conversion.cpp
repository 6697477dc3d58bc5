// cast(x, dtype[, out]): conversion between dtypes, as C does it where C defines it.
#include <type_traits>
#include <utility>

#include "arrays.h"
#include "kernels/pointwise/complex.h"
#include "kernels/pointwise/kernel.h"

#include "binding/binder.h"

PyArrayObject *cast_array(PyArrayObject *x, DType to);
PyArrayObject *row_major(PyArrayObject *x);
void order_dimensions(int ndim, const npy_intp *shape, int count, const Operand *o, int *order, int leader);
bool fills(PyArrayObject *x, const int *order);

namespace {

// Towards zero; what does not fit, and NaN, give the least integer of the type converted through.
template <class Whole, class F>
INLINE Whole to_signed(F x) {
    constexpr F limit = F(uint64_t(1) << (8 * sizeof(Whole) - 1));
    bool inside = (x >= -limit) & (x < limit);
    Whole whole = Whole(inside ? x : F(0));
    return inside ? whole : std::numeric_limits<Whole>::min();
}

template <class To, class F>
INLINE To to_whole(F x) {
    if constexpr (std::is_same_v<To, uint64_t>) {
        constexpr F top = F(9223372036854775808.0);
        bool high = (x >= top) & (x < top + top);
        uint64_t low = uint64_t(to_signed<int64_t>(high ? x - top : x));
        return low ^ (uint64_t(high) << 63);
    } else if constexpr (sizeof(To) == 8 || std::is_same_v<To, uint32_t>) {
        return To(to_signed<int64_t>(x));
    } else {
        return To(to_signed<int32_t>(x));
    }
}

template <class To>
struct Cast {
    template <class From>
    static INLINE auto call(From x) {
        if constexpr (std::is_same_v<To, bool>) {
            return is_true(x);
        } else if constexpr (is_complex<To>) {
            using P = decltype(To{}.re);
            return To{P(real_part(x)), P(imaginary_part(x))};
        } else if constexpr (is_complex<From>) {
            return Cast<To>::call(x.re);
        } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat>) {
            return float(x);
        } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
            return to_whole<To>(x);
        } else {
            return To(x);
        }
    }
};

Loop casts[DTYPES][DTYPES];

// ---- the loops, of which many conversions share one -----------------------------------------------

template <int size>
using Unsigned = std::conditional_t<size == 1, uint8_t, std::conditional_t<size == 2, uint16_t,
                 std::conditional_t<size == 4, uint32_t, uint64_t>>>;

template <class T>
constexpr bool is_whole = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// The types between which bits move in the same way: integers differ by their signs only where they
// are widened or become floats, and small ones not even where floats become integers.
template <class From, class To>
struct LoopTypes {
    using A = std::conditional_t<std::is_same_v<From, bool>, uint8_t, From>;
    static constexpr bool widens = std::is_floating_point_v<To> || sizeof(To) > sizeof(A);
    static constexpr bool wraps = is_whole<A> || sizeof(To) <= 2;
    using from = std::conditional_t<
        std::is_same_v<From, bool>, Truth,
        typename std::conditional_t<is_whole<A> && !widens, std::common_type<Unsigned<sizeof(A)>>,
                                    std::common_type<A>>::type>;
    using to = typename std::conditional_t<is_whole<To> && wraps, std::common_type<Unsigned<sizeof(To)>>,
                                           std::common_type<To>>::type;
};

template <class From, class To>
void add_cast() {
    using L = LoopTypes<From, To>;
    casts[DTypeOf<From>::value][DTypeOf<To>::value] = loop1<Cast<typename L::to>, typename L::to, typename L::from>;
}

template <class From, class... To>
void add_casts_from(Types<To...>) { (add_cast<From, To>(), ...); }

using Numbers = Types<bool, uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, float, double>;

template <class... From>
void add_casts(Types<From...>) { (add_casts_from<From>(Numbers{}), ...); }

// All others go through float or double, block by block.
template <DType FROM, DType BETWEEN, DType TO>
int cast_through(npy_intp n, char *const *p) {
    constexpr npy_intp block = 512;
    alignas(64) double buffer[block];
    const npy_intp from = size_of(FROM), to = size_of(TO);
    for (npy_intp i = 0; i < n; i += block) {
        npy_intp m = n - i < block ? n - i : block;
        char *first[] = {p[0] + i * from, (char *)buffer};
        char *second[] = {(char *)buffer, p[1] + i * to};
        casts[FROM][BETWEEN](m, first);
        casts[BETWEEN][TO](m, second);
    }
    return 0;
}

template <DType TYPE, DType BETWEEN, class... T>
void add_casts_through(Types<T...>) {
    ((casts[TYPE][DTypeOf<T>::value] = cast_through<TYPE, BETWEEN, DTypeOf<T>::value>), ...);
    ((casts[DTypeOf<T>::value][TYPE] = cast_through<DTypeOf<T>::value, BETWEEN, TYPE>), ...);
}

int from_half(npy_intp n, char *const *p) {
    widen_all((const Half *)p[0], (float *)p[1], n);
    return 0;
}
int to_half(npy_intp n, char *const *p) {
    narrow_all((const float *)p[0], (Half *)p[1], n);
    return 0;
}
int from_brain(npy_intp n, char *const *p) {
    widen_all((const BFloat *)p[0], (float *)p[1], n);
    return 0;
}
int to_brain(npy_intp n, char *const *p) {
    narrow_all((const float *)p[0], (BFloat *)p[1], n);
    return 0;
}

void add_all_casts() {
    add_casts(Numbers{});
    add_casts_through<F2, F4>(Types<bool, uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t,
                                    BFloat, double>{});
    add_casts_through<BF, F4>(Types<bool, uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t,
                                    Half, double>{});
    casts[F2][F4] = from_half, casts[F4][F2] = to_half;
    casts[BF][F4] = from_brain, casts[F4][BF] = to_brain;
    casts[F2][F2] = casts[BF][BF] = casts[U2][U2];

    using Others = Types<bool, uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, Half, BFloat>;
    add_casts_through<C8, F4>(Others{}), add_casts_through<C16, F8>(Others{});
    add_casts_from<float>(Complexes{}), add_casts_from<double>(Complexes{});
    using Complete = Types<bool, float, double, Complex64, Complex128>;
    add_casts_from<Complex64>(Complete{}), add_casts_from<Complex128>(Complete{});
}

PyObject *not_here() {
    Py_INCREF(Py_NotImplemented);
    return Py_NotImplemented;
}

PyObject *cast(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (names || n != 2 || !is_plain(args[0])) return not_here();
    PyArrayObject *x = (PyArrayObject *)args[0];
    PyArray_Descr *descr;
    if (!PyArray_DescrConverter(args[1], &descr)) return nullptr;
    DType from = dtype_of(PyArray_TYPE(x)), to = dtype_of(descr->type_num);
    if (from == NONE || to == NONE || !PyDataType_ISNOTSWAPPED(descr)) {
        Py_DECREF(descr);
        return not_here();
    }
    Py_DECREF(descr);
    return (PyObject *)cast_array(x, to);
}

}  // namespace

static PyArrayObject *convert_into(PyArrayObject *r, PyArrayObject *x, DType from, DType to) {
    if (!r || PyArray_SIZE(x) == 0) return r;
    int ndim = PyArray_NDIM(x);
    npy_intp shape[NPY_MAXDIMS];
    Operand o[2] = {{PyArray_BYTES(x), {}, size_of(from)}, {PyArray_BYTES(r), {}, size_of(to)}};
    int order[NPY_MAXDIMS];
    for (int d = 0; d < ndim; d++) order[d] = d;
    for (int i = 1; i < ndim; i++)  // outermost first, as the result lies in memory
        for (int j = i; j > 0 && PyArray_STRIDE(r, order[j - 1]) < PyArray_STRIDE(r, order[j]); j--)
            std::swap(order[j - 1], order[j]);
    for (int d = 0; d < ndim; d++) {
        shape[d] = PyArray_DIM(x, order[d]);
        o[0].strides[d] = PyArray_STRIDE(x, order[d]);
        o[1].strides[d] = PyArray_STRIDE(r, order[d]);
    }
    run_loop(casts[from][to], ndim, shape, 2, o);
    return r;
}

Loop cast_loop(DType from, DType to) { return casts[from][to]; }

PyArrayObject *cast_array(PyArrayObject *x, DType to) {
    PyArray_Descr *descr = descr_of(to);
    if (!descr) return nullptr;
    int ndim = PyArray_NDIM(x), order[NPY_MAXDIMS];
    npy_intp strides[NPY_MAXDIMS], *layout = nullptr;
    if (!PyArray_IS_C_CONTIGUOUS(x) && PyArray_SIZE(x)) {
        Operand own{PyArray_BYTES(x), {}, PyArray_ITEMSIZE(x)};
        for (int d = 0; d < ndim; d++) own.strides[d] = PyArray_STRIDE(x, d);
        order_dimensions(ndim, PyArray_DIMS(x), 1, &own, order, 0);
        bool same = fills(x, order);        // then the strides are those of x, else without gaps
        npy_intp step = descr->elsize;
        for (int i = ndim - 1; i >= 0; i--) {
            int d = order[i];
            strides[d] = same ? PyArray_STRIDE(x, d) / PyArray_ITEMSIZE(x) * descr->elsize : step;
            step *= PyArray_DIM(x, d);
        }
        layout = strides;
    }
    PyArrayObject *r = (PyArrayObject *)PyArray_NewFromDescr(
        &PyArray_Type, descr, ndim, PyArray_DIMS(x), layout, nullptr, 0, nullptr);
    return convert_into(r, x, dtype_of(PyArray_TYPE(x)), to);
}

namespace {

// An empty array of x's shape, row-major, or with the channels last.
PyArrayObject *empty_in(PyArrayObject *x, DType to, bool channels_last) {
    PyArray_Descr *descr = descr_of(to);
    if (!descr) return nullptr;
    int ndim = PyArray_NDIM(x);
    return (PyArrayObject *)(channels_last ? new_channels_last(descr, ndim, PyArray_DIMS(x))
                                           : new_array(descr, ndim, PyArray_DIMS(x), nullptr));
}

// An array as complex32: pairs of half-precision numbers, a type that Python has made.
PyObject *to_half_complex(PyArrayObject *x, DType from, PyArray_Descr *descr, bool channels_last) {
    if (descr->kind != 'W' || PyDataType_ELSIZE(descr) != 4) return not_here();
    PyArrayObject *wide = convert_into(empty_in(x, C8, channels_last), x, from, C8);
    if (!wide) return nullptr;
    npy_intp strides[NPY_MAXDIMS];
    for (int d = 0; d < PyArray_NDIM(x); d++) strides[d] = PyArray_STRIDE(wide, d) / 2;
    Py_INCREF(descr);
    PyArrayObject *r = (PyArrayObject *)new_array(descr, PyArray_NDIM(x), PyArray_DIMS(x), strides);
    npy_intp n = 2 * PyArray_SIZE(x);
    Operand o[2] = {{PyArray_BYTES(wide), {4}, 4}, {r ? PyArray_BYTES(r) : nullptr, {2}, 2}};
    if (r && n) run_loop(casts[F4][F2], 1, &n, 2, o);
    Py_DECREF(wide);
    return (PyObject *)r;
}

// to_copy(x, dtype, memory_format): another array, of that type if one is given, in memory as that
// format says, or as x is.
PyObject *to_copy(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    const binding::Known &known = binding::known;
    if (names || n != 3 || !is_plain(args[0])) return not_here();
    PyArrayObject *x = (PyArrayObject *)args[0];
    PyObject *format = args[2];
    DType from = dtype_of(PyArray_TYPE(x)), to = from;
    if (PyArray_DescrCheck(args[1])) to = dtype_of(((PyArray_Descr *)args[1])->type_num);
    else if (args[1] != Py_None) return not_here();
    bool row = PyArray_IS_C_CONTIGUOUS(x), keeps = format == Py_None || format == known.preserve;
    int rank = format == known.channels_last ? 4 : format == known.channels_last_3d ? 5 : 0;
    if (rank ? PyArray_NDIM(x) != rank : !keeps && format != known.contiguous) return not_here();
    if (keeps && row && !is_row_major(x)) return not_here();
    if (from != NONE && to == NONE && args[1] != Py_None && (row || !keeps))
        return to_half_complex(x, from, (PyArray_Descr *)args[1], rank);
    if (from == NONE || to == NONE || (from >= C8 && to < C8 && to != B1)) return not_here();
    if (keeps && !row) {
        if (to == from) return not_here();
        for (int d = 0; d < PyArray_NDIM(x); d++)
            if (!PyArray_STRIDE(x, d) || PyArray_DIM(x, d) < 2) return not_here();  // undecided
        return (PyObject *)cast_array(x, to);
    }
    if (to == from && !rank)
        return (PyObject *)(row ? (PyArrayObject *)PyArray_NewCopy(x, NPY_CORDER) : row_major(x));
    return (PyObject *)convert_into(empty_in(x, to, rank), x, from, to);
}

// clone(x, memory_format)
PyObject *clone(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (names || n != 2) return not_here();
    PyObject *all[] = {args[0], Py_None, args[1]};
    return to_copy(all, 3, nullptr);
}

}  // namespace

int register_conversion(PyObject *m) {
    add_all_casts();
    return make_function(m, "cast", cast) || make_function(m, "to_copy", to_copy) ||
                   make_function(m, "clone", clone)
               ? -1
               : 0;
}
