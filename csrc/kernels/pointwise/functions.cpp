// Roots, exponentials, logarithms, trigonometry, rounding.
#include <type_traits>

#include "kernels/pointwise/complex_library.h"
#include "kernels/pointwise/kernel.h"
#include "kernels/pointwise/powers.h"
#include "kernels/pointwise/vecmath.h"

int register_power(PyObject *m, Kernel *power);
namespace network {
int simd_level();
}

namespace {

// A function of complex numbers: the C library's.
#define COMPLEX(FUNCTION)                                                                          \
    template <class T>                                                                             \
    static Complex<T> call(Complex<T> x) { return from_library(std::FUNCTION(to_library(x))); }

// A function that has a vector form in both precisions, and perhaps one of complex numbers.
#define VECTOR(NAME, FUNCTION, ...)                                \
    struct NAME {                                                  \
        template <class T>                                         \
        static INLINE T call(T x) { return vec::FUNCTION(x); }     \
        __VA_ARGS__                                                \
    };
// One whose double precision is the C library's.
#define VECTOR32(NAME, FUNCTION)                                             \
    struct NAME {                                                            \
        static INLINE float call(float x) { return vec::FUNCTION(x); }       \
        static INLINE double call(double x) { return std::FUNCTION(x); }     \
        COMPLEX(FUNCTION)                                                    \
    };
// One that is an instruction.
#define LIBRARY(NAME, FUNCTION)                                    \
    struct NAME {                                                  \
        template <class T>                                         \
        static INLINE T call(T x) {                                \
            if constexpr (std::is_integral_v<T>)                   \
                return x;                                          \
            else                                                   \
                return std::FUNCTION(x);                           \
        }                                                          \
    };

VECTOR(Exp, exp, COMPLEX(exp))
VECTOR(Expm1, expm1)
VECTOR(Log, log, COMPLEX(log))
VECTOR(Log1p, log1p)
VECTOR(Tanh, tanh, COMPLEX(tanh))
VECTOR(Exp2, exp2)
VECTOR(Log2, log2)
VECTOR(Log10, log10)
VECTOR32(Arcsin, asin)
VECTOR32(Arccos, acos)
VECTOR(Arctan, atan, COMPLEX(atan))
VECTOR(Sinh, sinh, COMPLEX(sinh))
VECTOR(Cosh, cosh, COMPLEX(cosh))
VECTOR(Arcsinh, asinh, COMPLEX(asinh))
VECTOR(Arccosh, acosh, COMPLEX(acosh))
VECTOR(Arctanh, atanh, COMPLEX(atanh))
struct Sqrt {
    template <class T>
    static INLINE T call(T x) { return std::sqrt(x); }
    COMPLEX(sqrt)
};
LIBRARY(Floor, floor)
LIBRARY(Ceil, ceil)
LIBRARY(Trunc, trunc)
LIBRARY(Rint, rint)

struct Rsqrt {
    template <class T>
    static INLINE T call(T x) { return T(1) / std::sqrt(x); }
};
struct Frac {
    template <class T>
    static INLINE T call(T x) { return x - std::trunc(x); }
};

// Sine, cosine, tangent: blocks with an argument beyond the range reduction go to the C library.
struct Sin {
    template <class T>
    static INLINE T call(T x) { return vec::sin(x); }
    template <class T>
    static T library(T x) { return std::sin(x); }
    COMPLEX(sin)
};
struct Cos {
    template <class T>
    static INLINE T call(T x) { return vec::cos(x); }
    template <class T>
    static T library(T x) { return std::cos(x); }
    COMPLEX(cos)
};
struct Tan {
    template <class T>
    static INLINE T call(T x) { return vec::tan(x); }
    template <class T>
    static T library(T x) { return std::tan(x); }
    COMPLEX(tan)
};

template <class T>
CLONES bool any_large(const T *x, npy_intp n) {
    int large = 0;
    for (npy_intp i = 0; i < n; i++) large |= !(std::fabs(widen(x[i])) <= Compute<T>(vec::TRIG_LIMIT));
    return large;
}

template <class Op, class T>
int trig_loop(npy_intp n, char *const *p) {
    constexpr npy_intp block = 4096;
    for (npy_intp i = 0; i < n; i += block) {
        npy_intp m = n - i < block ? n - i : block;
        const T *x = (const T *)p[0] + i;
        T *r = (T *)p[1] + i;
        char *q[2] = {(char *)x, (char *)r};
        if (!any_large(x, m)) {
            loop1<Op, T, T>(m, q);
        } else {
            for (npy_intp j = 0; j < m; j++) {
                auto y = Op::library(widen(x[j]));
                r[j] = Narrow<T, decltype(y)>::from(y);
            }
        }
    }
    return 0;
}

template <class Op, class... T>
void declare_trig(PyObject *m, const char *name, Types<T...>) {
    Kernel *k = make_kernel(m, name, 1);
    if (!k) return;
    (add_loop<Op, Same, 1, T>(k), ...);
    ((k->table[DTypeOf<T>::value].loop = trig_loop<Op, T>), ...);
    add_loops<Op, Same, 1>(k, Complexes{});
}

struct Arctan2 {
    template <class T>
    static INLINE T call(T y, T x) { return vec::atan2(y, x); }
};
struct Hypot {
    static INLINE float call(float x, float y) { return vec::hypot(x, y); }
    static INLINE double call(double x, double y) { return vec::hypot(x, y); }
};
struct Copysign {
    template <class T>
    static INLINE T call(T x, T y) { return vec::with_sign(x, y); }
};
struct PowerFloat {
    static INLINE float call(float x, float y) { return vec::pow(x, y); }
    static INLINE double call(double x, double y) { return std::pow(x, y); }
};
struct PowerPositive {
    static INLINE double call(double x, double y) { return vec::pow_positive(x, y); }
};
struct PowerFinite {
    static INLINE double call(double x, double y) { return vec::pow_finite(x, y); }
};
enum PowerKind { NEGATIVE = 1, SPECIAL = 2 };
CLONES int power_kinds(const double *x, const double *y, npy_intp n) {
    int found = 0;
    for (npy_intp i = 0; i < n; i++) {
        int special = (x[i] == 0) | !(std::fabs(x[i]) < vec::INF64) | !(std::fabs(y[i]) < vec::INF64) ? SPECIAL : 0;
        found |= special | (x[i] < 0 ? NEGATIVE : 0);
    }
    return found;
}
// Blocks with zeros, infinities or NaN are left to the C library.
int power_loop(npy_intp n, char *const *p) {
    constexpr npy_intp block = 512, size = sizeof(double);
    for (npy_intp i = 0; i < n; i += block) {
        npy_intp m = n - i < block ? n - i : block;
        char *q[] = {p[0] + i * size, p[1] + i * size, p[2] + i * size};
        int found = power_kinds((const double *)q[0], (const double *)q[1], m);
        auto loop = found & SPECIAL ? loop2<PowerFloat, double, double, double>
                    : found         ? loop2<PowerFinite, double, double, double>
                                    : loop2<PowerPositive, double, double, double>;
        loop(m, q);
    }
    return 0;
}
bool multiplies_fused() {
#ifdef __FP_FAST_FMA
    return true;
#else
    return network::simd_level() > 0;
#endif
}
struct Ldexp {
    static INLINE float call(float x, float y) { return x * vec::exp2(y); }
    static INLINE double call(double x, double y) { return x * vec::exp2(y); }
};
struct Logaddexp {
    template <class T>
    static INLINE T call(T x, T y) {
        T high = x > y ? x : y, gap = std::fabs(x - y);
        T r = high + vec::log1p(vec::exp(-gap));
        return x == y ? x + T(vec::LN2) : (x != x) | (y != y) ? x + y : r;
    }
};
struct Logaddexp2 {
    static INLINE float call(float x, float y) {
        float high = x > y ? x : y, gap = std::fabs(x - y);
        float r = high + vec::log1p(vec::exp2(-gap)) * float(vec::LOG2E);
        return x == y ? x + 1.0f : (x != x) | (y != y) ? x + y : r;
    }
    static INLINE double call(double x, double y) {
        double high = x > y ? x : y, gap = std::fabs(x - y);
        double r = high + vec::log1p(vec::exp2(-gap)) * vec::LOG2E;
        return x == y ? x + 1.0 : (x != x) | (y != y) ? x + y : r;
    }
};
struct Heaviside {
    template <class T>
    static INLINE T call(T x, T y) { return x == T(0) ? y : T(x > T(0)); }
};
struct Angle {
    template <class T>
    static INLINE T call(T x) { return x != x ? x : x < T(0) ? T(vec::PI) : T(0); }
    template <class T>
    static INLINE T call(Complex<T> x) { return vec::atan2(x.im, x.re); }
};

// A complex number of two real ones: its parts, or its size and its angle.
struct ComplexOf {
    template <class T>
    using of = Complex<T>;
};
struct FromParts {
    template <class T>
    static INLINE Complex<T> call(T re, T im) { return {re, im}; }
};
struct FromPolar {
    template <class T>
    static INLINE Complex<T> call(T size, T angle) {
        return {size * std::cos(angle), size * std::sin(angle)};
    }
};

// The neighbour in the element's own type: a step of its bits.
template <class Float, class Bits>
CLONES int nextafter_loop(npy_intp n, char *const *p) {
    const Float *x = (const Float *)p[0], *y = (const Float *)p[1];
    Float *r = (Float *)p[2];
    constexpr Bits sign = Bits(Bits(1) << (8 * sizeof(Bits) - 1));
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        auto a = widen(x[i]), b = widen(y[i]);
        Bits u = bits<Bits>(x[i]), v = bits<Bits>(y[i]);
        Bits step = (b > a) == (a > 0) ? Bits(u + 1) : Bits(u - 1);
        Bits found = a == 0 ? b > 0 ? Bits(1) : Bits(sign | 1) : step;
        found = (b != b) | (a == b) ? v : found;
        r[i] = bits<Float>(a != a ? u : found);
    }
    return 0;
}

struct PowersOfTen {
    double of[310];
    PowersOfTen() {
        for (int i = 0; i < 310; i++) of[i] = std::pow(10.0, i);
    }
};
const PowersOfTen POWERS;

// To so many decimals; of a negative number of them, to that power of ten.
struct RoundDecimals {
    template <class T>
    static INLINE T call(T x, T decimals) {
        T digits = std::fabs(decimals);
        T scale = T(POWERS.of[digits < T(309) ? int(digits) : 309]);
        return decimals < T(0) ? std::rint(x / scale) * scale : std::rint(x * scale) / scale;
    }
};
struct NanToNum {
    template <class T>
    static INLINE T call(T x, T nan, T high, T low) {
        T infinite = x > T(0) ? high : low;
        return x != x ? nan : x - x == T(0) ? x : infinite;
    }
};

}  // namespace

int register_functions(PyObject *m) {
    declare<Sqrt, 1>(m, "sqrt", Floats{}, Complexes{});
    declare<Rsqrt, 1>(m, "rsqrt", Floats{});
    declare<Exp, 1>(m, "exp", CostlyFloats{}, Complexes{});
    declare<Exp2, 1>(m, "exp2", CostlyFloats{});
    declare<Expm1, 1>(m, "expm1", CostlyFloats{});
    declare<Log, 1>(m, "log", CostlyFloats{}, Complexes{});
    declare<Log2, 1>(m, "log2", CostlyFloats{});
    declare<Log10, 1>(m, "log10", CostlyFloats{});
    declare<Log1p, 1>(m, "log1p", CostlyFloats{});
    declare_trig<Sin>(m, "sin", Floats{});
    declare_trig<Cos>(m, "cos", Floats{});
    declare_trig<Tan>(m, "tan", Floats{});
    declare<Arcsin, 1>(m, "arcsin", CostlyFloats{}, Complexes{});
    declare<Arccos, 1>(m, "arccos", CostlyFloats{}, Complexes{});
    declare<Arctan, 1>(m, "arctan", CostlyFloats{}, Complexes{});
    declare<Sinh, 1>(m, "sinh", CostlyFloats{}, Complexes{});
    declare<Cosh, 1>(m, "cosh", CostlyFloats{}, Complexes{});
    declare<Tanh, 1>(m, "tanh", CostlyFloats{}, Complexes{});
    declare<Arcsinh, 1>(m, "arcsinh", CostlyFloats{}, Complexes{});
    declare<Arccosh, 1>(m, "arccosh", CostlyFloats{}, Complexes{});
    declare<Arctanh, 1>(m, "arctanh", CostlyFloats{}, Complexes{});
    declare<Floor, 1>(m, "floor", Integers{}, Floats{});
    declare<Ceil, 1>(m, "ceil", Integers{}, Floats{});
    declare<Trunc, 1>(m, "trunc", Integers{}, Floats{});
    declare<Rint, 1>(m, "rint", Integers{}, Floats{});
    declare<Frac, 1>(m, "frac", Floats{});
    with_constants<RoundDecimals, 2, 0b10>(declare<RoundDecimals, 2>(m, "round_decimals", Floats{}), UsualFloats{});
    with_constants<NanToNum, 4, 0b1110>(declare<NanToNum, 4>(m, "nan_to_num", Floats{}), UsualFloats{});
    declare<Arctan2, 2>(m, "arctan2", CostlyFloats{});
    declare<Hypot, 2>(m, "hypot", CostlyFloats{});
    declare<Copysign, 2>(m, "copysign", Floats{});
    declare<Ldexp, 2>(m, "ldexp", Floats{});
    declare<Logaddexp, 2>(m, "logaddexp", CostlyFloats{});
    declare<Logaddexp2, 2>(m, "logaddexp2", CostlyFloats{});
    declare<Heaviside, 2>(m, "heaviside", Bools{}, Integers{}, Floats{});
    declare<Angle, 1, Real>(m, "angle", Floats{}, Complexes{});
    declare<FromParts, 2, ComplexOf>(m, "complex", Types<float, double>{});
    declare<FromPolar, 2, ComplexOf>(m, "polar", Types<float, double>{});
    Kernel *power = declare<PowerFloat, 2>(m, "power", CostlyFloats{});
    if (!power || register_power(m, power)) return -1;
    if (multiplies_fused()) power->table[F8].loop = power_loop;
    Kernel *next = declare<Copysign, 2>(m, "nextafter", Floats{});
    if (!next) return -1;
    next->table[F2].loop = nextafter_loop<Half, uint16_t>;
    next->table[BF].loop = nextafter_loop<BFloat, uint16_t>;
    next->table[F4].loop = nextafter_loop<float, uint32_t>;
    next->table[F8].loop = nextafter_loop<double, uint64_t>;
    return PyErr_Occurred() ? -1 : 0;
}
