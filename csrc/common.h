// What every translation unit of the extension shares: Python's and NumPy's headers, element types,
// compiler annotations. A unit offers `int register_xxx(PyObject *module)`; module.cpp calls it.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL flambeau_array_api
#ifndef FLAMBEAU_IMPORT_ARRAY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

// A function that the compiler makes three versions of, the best of which the loader picks.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    __GNUC__ >= 12 && !defined(FLAMBEAU_NO_CLONES)
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define FLAMBEAU_CLONES 1
#else
#define CLONES
#define FLAMBEAU_CLONES 0
#endif

// Iterations do not depend on each other: an operand may be the result itself, but never a part
// of it shifted.
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT __pragma(loop(ivdep))
#endif

#if defined(__GNUC__) || defined(__clang__)
#define INLINE inline __attribute__((always_inline))
#define INLINE_LAMBDA __attribute__((always_inline))
#else
#define INLINE __forceinline
#define INLINE_LAMBDA
#endif

template <class To, class From>
INLINE To bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "bits: sizes differ");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

// ---- element types ------------------------------------------------------------------------------

struct Half {
    uint16_t v;
};
struct BFloat {
    uint16_t v;
};

// A bool's byte. A view of other bytes may hold any: all but zero are true.
struct Truth {
    uint8_t v;
};

template <class T>
struct Complex {
    T re, im;
};
using Complex64 = Complex<float>;
using Complex128 = Complex<double>;

// Shifting the bits into place and scaling by 2^112 also converts subnormal numbers.
INLINE float widen(Half h) {
    uint32_t magnitude = uint32_t(h.v & 0x7fff) << 13;
    float scaled = bits<float>(magnitude) * 5.192296858534828e33f;
    uint32_t u = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : bits<uint32_t>(scaled);
    return bits<float>(u | uint32_t(h.v & 0x8000) << 16);
}

INLINE float widen(BFloat b) { return bits<float>(uint32_t(b.v) << 16); }
INLINE uint8_t widen(Truth t) { return t.v != 0; }

template <class T>
INLINE T widen(T x) {
    return x;
}

template <class R, class T>
struct Narrow {
    static INLINE R from(T x) { return R(x); }
};
template <class T>
struct Narrow<T, T> {
    static INLINE T from(T x) { return x; }
};
template <>
struct Narrow<Half, float> {  // to nearest, ties to even
    static INLINE Half from(float f) {
        uint32_t u = bits<uint32_t>(f), sign = u & 0x80000000u, magnitude = u ^ sign;
        uint32_t normal = (magnitude - 0x38000000u + 0xfff + ((magnitude >> 13) & 1)) >> 13;
        uint32_t small = bits<uint32_t>(bits<float>(magnitude) + 0.5f) - 0x3f000000u;
        uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
        uint32_t r = magnitude < 0x38800000u ? small : normal;
        r = magnitude >= 0x47800000u ? special : r;
        return Half{uint16_t(r | sign >> 16)};
    }
};
template <>
struct Narrow<BFloat, float> {
    static INLINE BFloat from(float f) {
        uint32_t u = bits<uint32_t>(f);
        uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
        uint32_t nan = (u >> 16) | 0x40;
        return BFloat{uint16_t((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded)};
    }
};

// The dtypes in the order of the loop tables.
enum DType : int8_t { B1, U1, U2, U4, U8, I1, I2, I4, I8, F2, BF, F4, F8, C8, C16, DTYPES, NONE = -1 };

template <class T>
struct DTypeOf;
#define FLAMBEAU_DTYPE(T, D) \
    template <>              \
    struct DTypeOf<T> {      \
        static constexpr DType value = D; \
    };
FLAMBEAU_DTYPE(bool, B1)
FLAMBEAU_DTYPE(uint8_t, U1)
FLAMBEAU_DTYPE(uint16_t, U2)
FLAMBEAU_DTYPE(uint32_t, U4)
FLAMBEAU_DTYPE(uint64_t, U8)
FLAMBEAU_DTYPE(int8_t, I1)
FLAMBEAU_DTYPE(int16_t, I2)
FLAMBEAU_DTYPE(int32_t, I4)
FLAMBEAU_DTYPE(int64_t, I8)
FLAMBEAU_DTYPE(Half, F2)
FLAMBEAU_DTYPE(BFloat, BF)
FLAMBEAU_DTYPE(float, F4)
FLAMBEAU_DTYPE(double, F8)
FLAMBEAU_DTYPE(Complex64, C8)
FLAMBEAU_DTYPE(Complex128, C16)
#undef FLAMBEAU_DTYPE

// The type that arithmetic is done in.
template <class T>
struct ComputeOf {
    using type = T;
};
template <>
struct ComputeOf<Half> {
    using type = float;
};
template <>
struct ComputeOf<BFloat> {
    using type = float;
};
template <>
struct ComputeOf<Truth> {
    using type = uint8_t;
};
template <class T>
using Compute = typename ComputeOf<T>::type;

template <class... T>
struct Types {};
using Bools = Types<bool>;
using Integers = Types<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t>;
// Without those unsigned ones of which PyTorch computes little: for them the twins will do.
using UsualIntegers = Types<uint8_t, int8_t, int16_t, int32_t, int64_t>;
using Floats = Types<Half, BFloat, float, double>;
using Complexes = Types<Complex64, Complex128>;

// ---- dtypes of NumPy ----------------------------------------------------------------------------

DType dtype_of(int type_num);                 // NONE for what has no loops
int type_num_of(DType dtype);                 // NumPy's number; -1 for an unregistered bfloat16
PyArray_Descr *descr_of(DType dtype);         // a new reference, or null with an error set
npy_intp size_of(DType dtype);

// A plain array that loops may read as it is: aligned, of the machine's byte order.
inline bool is_plain(PyObject *x) {
    return PyArray_CheckExact(x) &&
           (PyArray_FLAGS((PyArrayObject *)x) & NPY_ARRAY_ALIGNED) &&
           PyDataType_ISNOTSWAPPED(PyArray_DESCR((PyArrayObject *)x));
}
