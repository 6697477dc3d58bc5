// Arithmetic, integer operations, selection.
#include <type_traits>

#include "kernels/pointwise/complex.h"
#include "kernels/pointwise/kernel.h"
#include "kernels/pointwise/vecmath.h"

namespace {

// Integers wrap around: computed in the unsigned type, where that is defined.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), unsigned, std::make_unsigned_t<T>>;

template <class T>
constexpr bool is_whole = std::is_integral_v<T> && !std::is_same_v<T, bool>;

#define ARITHMETIC(NAME, SIGN, BOOLEAN)                                   \
    struct NAME {                                                         \
        static constexpr bool signless = true;                            \
        template <class T>                                                \
        static INLINE T call(T a, T b) {                                  \
            if constexpr (std::is_same_v<T, bool>)                        \
                return bool(a BOOLEAN b);                                 \
            else if constexpr (is_whole<T>)                               \
                return T(Wrapping<T>(a) SIGN Wrapping<T>(b));             \
            else                                                          \
                return a SIGN b;                                          \
        }                                                                 \
    };
ARITHMETIC(Add, +, |)
ARITHMETIC(Subtract, -, ^)
ARITHMETIC(Multiply, *, &)

struct Divide {
    template <class T>
    static INLINE T call(T a, T b) { return a / b; }
};

struct Negative {
    static constexpr bool signless = true;
    template <class T>
    static INLINE T call(T a) {
        if constexpr (is_whole<T>)
            return T(Wrapping<T>(0) - Wrapping<T>(a));
        else
            return -a;
    }
};
struct Positive {
    static constexpr bool signless = true;
    template <class T>
    static INLINE T call(T a) { return a; }
};
struct Conjugate {
    static constexpr bool signless = true;
    template <class T>
    static INLINE T call(T a) { return conjugate(a); }
};
struct RealPart {
    static constexpr bool signless = true;
    template <class T>
    static INLINE auto call(T a) { return real_part(a); }
};
struct ImaginaryPart {
    static constexpr bool signless = true;
    template <class T>
    static INLINE auto call(T a) { return imaginary_part(a); }
};
struct Square {
    static constexpr bool signless = true;
    template <class T>
    static INLINE T call(T a) { return Multiply::call(a, a); }
};
struct Cube {
    static constexpr bool signless = true;
    template <class T>
    static INLINE T call(T a) { return Multiply::call(Multiply::call(a, a), a); }
};
struct Absolute {
    template <class T>
    static INLINE auto call(T a) {
        if constexpr (is_complex<T>)
            return vec::hypot(a.re, a.im);
        else if constexpr (std::is_unsigned_v<T>)
            return a;
        else if constexpr (is_whole<T>)
            return a < 0 ? Negative::call(a) : a;
        else
            return std::fabs(a);
    }
};
// Halves by their bits: the sign turned, or cleared.
template <bool turn>
struct WithoutSign {
    static INLINE uint16_t call(uint16_t a) { return turn ? a ^ 0x8000 : a & 0x7fff; }
};
struct Sign {
    template <class T>
    static INLINE T call(T a) {
        if constexpr (std::is_same_v<T, bool>) {
            return a;
        } else if constexpr (is_complex<T>) {
            auto size = vec::hypot(a.re, a.im);
            return size == 0 ? T{0, 0} : T{a.re / size, a.im / size};
        } else {
            return T((a > T(0)) - (a < T(0)));
        }
    }
};
struct Reciprocal {
    template <class T>
    static INLINE T call(T a) { return one<T>() / a; }
};

// ---- division of integers and floats ------------------------------------------------------------

struct FloorDivide {
    template <class T>
    static INLINE T call(T a, T b) {
        if constexpr (is_whole<T>) {
            if constexpr (std::is_signed_v<T>) {
                if (b == T(-1)) return Negative::call(a);
                T q = T(a / b);
                return T(q - ((a % b != 0) && ((a < 0) != (b < 0))));
            }
            return T(a / b);
        } else {
            return given(a, b, std::fmod(a, b));
        }
    }
    template <class T>
    static INLINE T given(T a, T b, T left) {  // left: fmod(a, b)
        T ratio = a / b, quotient = (a - left) / b;
        quotient -= T((left != 0) & ((b < 0) != (left < 0)));
        T whole = std::floor(quotient);
        whole = quotient - whole > T(0.5) ? whole + 1 : whole;
        whole = quotient == 0 ? std::copysign(T(0), ratio) : whole;
        return b == 0 ? ratio : whole;
    }
    static INLINE int64_t of_near(double a, double b) { return int64_t(std::floor(a / b)); }
};
struct Remainder {
    template <class T>
    static INLINE T call(T a, T b) {
        if constexpr (is_whole<T>) {
            if constexpr (std::is_signed_v<T>) {
                if (b == T(-1)) return 0;
                T r = T(a % b);
                return T(r != 0 && (r < 0) != (b < 0) ? r + b : r);
            }
            return T(a % b);
        } else {
            return given(a, b, std::fmod(a, b));
        }
    }
    template <class T>
    static INLINE T given(T, T b, T left) {
        return (left != 0) & ((b < 0) != (left < 0)) ? left + b : left;
    }
    static INLINE int64_t of_near(double a, double b) { return int64_t(a) - int64_t(std::floor(a / b)) * int64_t(b); }
};
struct Fmod {
    template <class T>
    static INLINE T call(T a, T b) {
        if constexpr (is_whole<T>) {
            if constexpr (std::is_signed_v<T>)
                if (b == T(-1)) return 0;
            return T(a % b);
        } else {
            return std::fmod(a, b);
        }
    }
    template <class T>
    static INLINE T given(T, T, T left) { return left; }
    static INLINE int64_t of_near(double a, double b) { return int64_t(a) - int64_t(std::trunc(a / b)) * int64_t(b); }
};

template <class Op, class T>
int checked_loop(npy_intp n, char *const *p) {
    const T *a = (const T *)p[0], *b = (const T *)p[1];
    T *r = (T *)p[2];
    for (npy_intp i = 0; i < n; i++) {
        if (b[i] == 0) return 1;
        r[i] = Op::call(a[i], b[i]);
    }
    return 0;
}

template <class Op, class... T>
void check_zero(Kernel *k, Types<T...>) {
    ((k->table[DTypeOf<T>::value].loop = checked_loop<Op, T>), ...);
}

// The double that is nearest to the quotient of two floats has the same whole part below 2^28, and
// the remainder is exact in double; blocks with other numbers, or infinities, are for std::fmod.
template <class Op>
CLONES int float_division(npy_intp n, char *const *p) {
    const float *a = (const float *)p[0], *b = (const float *)p[1];
    float *r = (float *)p[2];
    constexpr npy_intp BLOCK = 256;
    float left[BLOCK];
    for (; n > 0; n -= BLOCK, a += BLOCK, b += BLOCK, r += BLOCK) {
        npy_intp m = n < BLOCK ? n : BLOCK;
        int far = 0;
        for (npy_intp i = 0; i < m; i++) {
            double x = a[i], y = b[i], whole = std::trunc(x / y);
            far |= !(std::fabs(whole) < 0x1p28) | !(std::fabs(y) < HUGE_VAL);
            left[i] = std::copysign(float(x - whole * y), a[i]);
        }
        if (far)
            for (npy_intp i = 0; i < m; i++) left[i] = std::fmod(a[i], b[i]);
        INDEPENDENT
        for (npy_intp i = 0; i < m; i++) r[i] = Op::given(a[i], b[i], left[i]);
    }
    return 0;
}

// Of doubles: the whole part of the rounded quotient is off by one at most while it is below 2^52, and
// the rest is then exact in one fused step.
template <class Op>
CLONES int double_division(npy_intp n, char *const *p) {
    const double *a = (const double *)p[0], *b = (const double *)p[1];
    double *r = (double *)p[2];
    constexpr npy_intp BLOCK = 256;
    double left[BLOCK];
    for (; n > 0; n -= BLOCK, a += BLOCK, b += BLOCK, r += BLOCK) {
        npy_intp m = n < BLOCK ? n : BLOCK;
        int64_t far = 0;
        for (npy_intp i = 0; i < m; i++) {
            double x = std::fabs(a[i]), y = std::fabs(b[i]), whole = std::trunc(x / y);
            far |= !(whole < 0x1p52) | !(y < HUGE_VAL) | !(y > 1e-290);
            double rest = std::fma(-whole, y, x);
            rest = rest < 0 ? rest + y : rest;
            rest = rest >= y ? rest - y : rest;
            left[i] = std::copysign(rest, a[i]);
        }
        if (far)
            for (npy_intp i = 0; i < m; i++) left[i] = std::fmod(a[i], b[i]);
        INDEPENDENT
        for (npy_intp i = 0; i < m; i++) r[i] = Op::given(a[i], b[i], left[i]);
    }
    return 0;
}

// Of halves: by floats.
template <class Op, class T>
CLONES int narrow_division(npy_intp n, char *const *p) {
    const T *a = (const T *)p[0], *b = (const T *)p[1];
    T *r = (T *)p[2];
    constexpr npy_intp BLOCK = 256;
    float x[BLOCK], y[BLOCK], found[BLOCK];
    char *q[] = {(char *)x, (char *)y, (char *)found};
    for (; n > 0; n -= BLOCK, a += BLOCK, b += BLOCK, r += BLOCK) {
        npy_intp m = n < BLOCK ? n : BLOCK;
        for (npy_intp i = 0; i < m; i++) x[i] = widen(a[i]), y[i] = widen(b[i]);
        float_division<Op>(m, q);
        for (npy_intp i = 0; i < m; i++) r[i] = Narrow<T, float>::from(found[i]);
    }
    return 0;
}

// Whole numbers below 2^50 have a quotient in double whose whole part is theirs.
template <class Op, class T, bool constant>
CLONES int whole_division(npy_intp n, char *const *p) {
    const T *a = (const T *)p[0], *b = (const T *)p[1];
    T *r = (T *)p[2];
    constexpr npy_intp BLOCK = 512;
    constexpr uint64_t reach = uint64_t(1) << 50;
    const T divisor = b[0];
    for (; n > 0; n -= BLOCK, a += BLOCK, b += constant ? 0 : BLOCK, r += BLOCK) {
        npy_intp m = n < BLOCK ? n : BLOCK;
        int zero = 0, far = 0;
        for (npy_intp i = 0; i < m; i++) {
            int64_t x = a[i], y = constant ? divisor : b[i];
            zero |= y == 0;
            far |= (uint64_t(x) + reach > 2 * reach) | (uint64_t(y) + reach > 2 * reach);
        }
        if (zero) return 1;
        if (far) {
            for (npy_intp i = 0; i < m; i++) r[i] = Op::call(a[i], constant ? divisor : b[i]);
            continue;
        }
        INDEPENDENT
        for (npy_intp i = 0; i < m; i++) {
            double x = double(a[i]), y = double(constant ? divisor : b[i]);
            r[i] = T(Op::of_near(x, y));
        }
    }
    return 0;
}

template <class Op, class T>
void divide_near(Kernel *k) {
    Entry &e = k->table[DTypeOf<T>::value];
    e.loop = whole_division<Op, T, false>;
    e.constant[0] = {whole_division<Op, T, true>, 2};
}

template <class Op>
void declare_division(PyObject *m, const char *name) {
    Kernel *k = declare<Op, 2>(m, name, Floats{});
    k->table[F4].loop = float_division<Op>;
    k->table[F8].loop = double_division<Op>;
    k->table[F2].loop = narrow_division<Op, Half>, k->table[BF].loop = narrow_division<Op, BFloat>;
    for (int d = U1; d <= I8; d++) k->table[d].in[0] = k->table[d].in[1] = k->table[d].out = DType(d);
    check_zero<Op>(k, Integers{});
    divide_near<Op, int64_t>(k), divide_near<Op, int32_t>(k);
}

struct Power {
    template <class T>
    static INLINE T call(T a, T b) {
        if constexpr (std::is_signed_v<T>) {
            if (b < 0) return a == 1 ? T(1) : a == -1 ? T(b & 1 ? -1 : 1) : T(0);
        }
        using W = Wrapping<T>;
        W result = 1, base = W(a);
        for (std::make_unsigned_t<T> e = b; e; e >>= 1) {
            if (e & 1) result *= base;
            base *= base;
        }
        return T(result);
    }
};

template <class T>
INLINE std::make_unsigned_t<T> magnitude(T a) {
    using U = std::make_unsigned_t<T>;
    return a < 0 ? U(U(0) - U(a)) : U(a);
}
struct Gcd {
    template <class T>
    static INLINE T call(T a, T b) {
        auto x = magnitude(a), y = magnitude(b);
        while (y) {
            auto r = decltype(x)(x % y);
            x = y, y = r;
        }
        return T(x);
    }
};
struct Lcm {
    template <class T>
    static INLINE T call(T a, T b) {
        T divisor = Gcd::call(a, b);
        if (divisor == 0) return 0;
        // narrow types are multiplied as int, and wrap around last
        using Promoted = std::conditional_t<std::is_signed_v<T>, int, unsigned>;
        using Wide = std::conditional_t<(sizeof(T) < 4), Promoted, T>;
        T whole = std::is_signed_v<T> && divisor == T(-1) ? Negative::call(a) : T(a / divisor);
        Wide product = Wide(Wrapping<Wide>(whole) * Wrapping<Wide>(b));
        return T(Absolute::call(product));
    }
};

// ---- bits ---------------------------------------------------------------------------------------

#define BITWISE(NAME, SIGN)                                        \
    struct NAME {                                                  \
        template <class T>                                         \
        static INLINE T call(T a, T b) { return T(a SIGN b); }     \
    };
BITWISE(And, &)
BITWISE(Or, |)
BITWISE(Xor, ^)
struct Not {
    static constexpr bool signless = true;
    template <class T>
    static INLINE T call(T a) {
        if constexpr (std::is_same_v<T, bool>)
            return !a;
        else
            return T(~a);
    }
};
// Truth values, whose bytes are 0 or 1.
struct NotByte {
    static INLINE uint8_t call(uint8_t a) { return a ^ 1; }
};
struct LeftShift {
    template <class T>
    static INLINE T call(T a, T b) {
        constexpr int width = 8 * sizeof(T);
        bool outside = b < 0 || b >= T(width);
        auto shift = outside ? 0 : int(b);
        return outside ? T(0) : T(Wrapping<T>(a) << shift);
    }
};
struct RightShift {
    template <class T>
    static INLINE T call(T a, T b) {
        constexpr int width = 8 * sizeof(T);
        bool outside = b < 0 || b >= T(width);
        if constexpr (std::is_signed_v<T>) return T(a >> (outside ? width - 1 : int(b)));
        return outside ? T(0) : T(a >> (outside ? 0 : int(b)));
    }
};

// ---- selection ----------------------------------------------------------------------------------

template <class T>
INLINE bool is_nan(T a) { return a != a; }

#define EXTREMUM(NAME, SIGN)                                                   \
    struct NAME { /* a NaN wins */                                             \
        template <class T>                                                     \
        static INLINE T call(T a, T b) {                                       \
            T r = a SIGN b ? a : b;                                            \
            if constexpr (std::is_floating_point_v<T>) r = is_nan(a) ? a : r;  \
            return r;                                                          \
        }                                                                      \
    };                                                                         \
    struct F##NAME { /* a number wins */                                       \
        template <class T>                                                     \
        static INLINE T call(T a, T b) {                                       \
            T r = a SIGN b ? a : b;                                            \
            if constexpr (std::is_floating_point_v<T>) r = is_nan(b) ? a : r;  \
            return r;                                                          \
        }                                                                      \
    };
EXTREMUM(Maximum, >=)
EXTREMUM(Minimum, <=)

struct Clip {
    template <class T>
    static INLINE T call(T a, T lo, T hi) { return Minimum::call(Maximum::call(a, lo), hi); }
};

struct Where {
    template <class T>
    static INLINE T call(uint8_t c, T a, T b) {
        if constexpr (std::is_integral_v<T>) {  // no branch, which short rows would guess wrong
            T chosen = T(T(0) - T(c != 0));
            return T((a & chosen) | (b & T(~chosen)));
        }
        return c ? a : b;
    }
};
// Elements only move: loops by size, whatever their type.
template <class T>
void where_loop(Kernel *k, std::initializer_list<DType> dtypes) {
    for (DType d : dtypes) {
        Entry &e = k->table[d];
        e.loop = loop3<Where, T, uint8_t, T, T>;
        e.in[0] = B1, e.in[1] = e.in[2] = e.out = d;
    }
}

// ---- combinations -------------------------------------------------------------------------------

struct Lerp {  // exact at both ends
    template <class T>
    static INLINE T call(T a, T b, T weight) {
        if constexpr (is_complex<T>) {
            bool near = weight.re * weight.re + weight.im * weight.im < decltype(weight.re)(0.25);
            return near ? a + weight * (b - a) : b - (b - a) * (one<T>() - weight);
        } else {
            return std::fabs(weight) < T(0.5) ? a + weight * (b - a) : b - (b - a) * (1 - weight);
        }
    }
};
struct Axpy {
    static constexpr bool signless = true;
    template <class T>
    static INLINE T call(T a, T b, T alpha) { return Add::call(a, Multiply::call(alpha, b)); }
};
struct AddCMul {
    static constexpr bool signless = true;
    template <class T>
    static INLINE T call(T a, T b, T c, T value) {
        return Add::call(a, Multiply::call(Multiply::call(value, b), c));
    }
};
struct AddCDiv {
    template <class T>
    static INLINE T call(T a, T b, T c, T value) { return a + value * b / c; }
};

}  // namespace

int register_arithmetic(PyObject *m) {
    const double unit = 1;
    Kernel *add = declare<Add, 2>(m, "add", Bools{}, Integers{}, Floats{}, Complexes{});
    Kernel *subtract = declare<Subtract, 2>(m, "subtract", Integers{}, Floats{}, Complexes{});
    Kernel *multiply = declare<Multiply, 2>(m, "multiply", Bools{}, Integers{}, Floats{}, Complexes{});
    Kernel *divide = declare<Divide, 2>(m, "divide", Floats{}, Complexes{});
    with_constants<Add, 2, 0b10>(add, Usual{}), with_constants<Add, 2, 0b01>(add, Usual{});
    with_constants<Subtract, 2, 0b10>(subtract, Usual{}), with_constants<Subtract, 2, 0b01>(subtract, Usual{});
    with_constants<Multiply, 2, 0b10>(multiply, Usual{}), with_constants<Multiply, 2, 0b01>(multiply, Usual{});
    with_constants<Divide, 2, 0b10>(divide, UsualFloats{}), with_constants<Divide, 2, 0b01>(divide, UsualFloats{});
    Kernel *negative = declare<Negative, 1>(m, "negative", Integers{}, Floats{}, Complexes{});
    negative->table[F2].loop = negative->table[BF].loop = loop1<WithoutSign<true>, uint16_t, uint16_t>;
    declare<Positive, 1>(m, "positive", Integers{}, Floats{}, Complexes{});
    declare<Conjugate, 1>(m, "conj", Bools{}, Integers{}, Floats{}, Complexes{});
    declare<RealPart, 1, Real>(m, "real", Bools{}, Integers{}, Floats{}, Complexes{});
    declare<ImaginaryPart, 1, Real>(m, "imag", Bools{}, Integers{}, Floats{}, Complexes{});
    declare<Cube, 1>(m, "cube", Types<int32_t, int64_t, float, double>{});
    declare<Square, 1>(m, "square", Integers{}, Floats{}, Complexes{});
    Kernel *absolute = declare<Absolute, 1, Real>(m, "absolute", Integers{}, Floats{}, Complexes{});
    absolute->table[F2].loop = absolute->table[BF].loop = loop1<WithoutSign<false>, uint16_t, uint16_t>;
    declare<Sign, 1>(m, "sign", Bools{}, Integers{}, Floats{});
    declare<Sign, 1>(m, "sgn", Bools{}, Integers{}, Floats{}, Complexes{});
    declare<Reciprocal, 1>(m, "reciprocal", Floats{}, Complexes{});
    declare_division<FloorDivide>(m, "floor_divide");
    declare_division<Remainder>(m, "remainder");
    declare_division<Fmod>(m, "fmod");
    declare<Gcd, 2>(m, "gcd", Integers{});
    declare<Lcm, 2>(m, "lcm", Integers{});
    declare<And, 2>(m, "bitwise_and", Bools{}, Integers{});
    declare<Or, 2>(m, "bitwise_or", Bools{}, Integers{});
    declare<Xor, 2>(m, "bitwise_xor", Bools{}, Integers{});
    declare<Not, 1>(m, "bitwise_not", Bools{}, Integers{})->table[B1].loop = loop1<NotByte, uint8_t, uint8_t>;
    declare<LeftShift, 2>(m, "left_shift", Integers{});
    declare<RightShift, 2>(m, "right_shift", Integers{});
    with_constants<Maximum, 2, 0b10>(declare<Maximum, 2>(m, "maximum", Bools{}, Integers{}, Floats{}), Usual{});
    with_constants<Minimum, 2, 0b10>(declare<Minimum, 2>(m, "minimum", Bools{}, Integers{}, Floats{}), Usual{});
    declare<FMaximum, 2>(m, "fmax", Bools{}, Integers{}, Floats{});
    declare<FMinimum, 2>(m, "fmin", Bools{}, Integers{}, Floats{});
    with_constants<Clip, 3, 0b110>(declare<Clip, 3>(m, "clip", Bools{}, Integers{}, Floats{}),
                                    Types<float, double, int64_t, int32_t, int16_t, uint8_t>{});
    with_constants<Lerp, 3, 0b100>(declare<Lerp, 3>(m, "lerp", Floats{}, Complexes{}), UsualFloats{});
    with_constants<Axpy, 3, 0b100>(declare<Axpy, 3>(m, "axpy", Integers{}, Floats{}, Complexes{}), Usual{});
    Kernel *addcmul = declare<AddCMul, 4>(m, "addcmul", Integers{}, Floats{}, Complexes{});
    Kernel *addcdiv = declare<AddCDiv, 4>(m, "addcdiv", Floats{}, Complexes{});
    set_defaults(addcmul, 3, &unit), set_defaults(addcdiv, 3, &unit);
    with_constants<AddCMul, 4, 0b1000>(addcmul, UsualFloats{});
    with_constants<AddCDiv, 4, 0b1000>(addcdiv, UsualFloats{});
    Kernel *where = make_kernel(m, "where", 3);
    if (!where) return -1;
    where->key = 1;
    where_loop<uint8_t>(where, {B1, U1, I1});
    where_loop<uint16_t>(where, {U2, I2, F2, BF});
    where_loop<uint32_t>(where, {U4, I4, F4});
    where_loop<uint64_t>(where, {U8, I8, F8});
    where_loop<Complex64>(where, {C8});
    where_loop<Complex128>(where, {C16});
    return PyErr_Occurred() ? -1 : 0;
}

int register_power(PyObject *m, Kernel *power) {
    (void)m;
    add_loops<Power, Same, 2>(power, Integers{});
    return 0;
}
