// cast(x, dtype[, out]): conversion between dtypes, as C does it where C defines it.
#include <type_traits>
#include <utility>

#include "complex.h"
#include "kernel.h"

PyArrayObject *cast_array(PyArrayObject *x, DType to);

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

template <class From, class To>
void add_cast() { casts[DTypeOf<From>::value][DTypeOf<To>::value] = loop1<Cast<To>, To, From>; }

template <class From, class... To>
void add_casts_from(Types<To...>) { (add_cast<From, To>(), ...); }

using All = Types<bool, uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, Half,
                  BFloat, float, double, Complex64, Complex128>;

template <class... From>
void add_casts(Types<From...>) { (add_casts_from<From>(All{}), ...); }

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

PyArrayObject *cast_array(PyArrayObject *x, DType to) {
    DType from = dtype_of(PyArray_TYPE(x));
    PyArray_Descr *descr = descr_of(to);
    if (!descr) return nullptr;
    // the memory order of x, without its gaps
    PyArrayObject *r = (PyArrayObject *)PyArray_NewLikeArray(x, NPY_KEEPORDER, descr, 0);
    if (!r) return nullptr;
    if (PyArray_SIZE(x) == 0) return r;
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

int register_conversion(PyObject *m) {
    add_casts(All{});
    return make_function(m, "cast", cast);
}
