// Comparison, logic, classification.
#include <type_traits>

#include "kernels/pointwise/complex.h"
#include "kernels/pointwise/kernel.h"

namespace {

#define COMPARISON(NAME, SIGN, SIGNLESS)                           \
    struct NAME {                                                  \
        static constexpr bool signless = SIGNLESS;                 \
        template <class T>                                         \
        static INLINE bool call(T a, T b) { return a SIGN b; }     \
    };
COMPARISON(Equal, ==, true)
COMPARISON(NotEqual, !=, true)
COMPARISON(Less, <, false)
COMPARISON(LessEqual, <=, false)
COMPARISON(Greater, >, false)
COMPARISON(GreaterEqual, >=, false)

struct LogicalAnd {
    static constexpr bool signless = true;
    template <class T>
    static INLINE bool call(T a, T b) { return is_true(a) & is_true(b); }
};
struct LogicalOr {
    static constexpr bool signless = true;
    template <class T>
    static INLINE bool call(T a, T b) { return is_true(a) | is_true(b); }
};
struct LogicalXor {
    static constexpr bool signless = true;
    template <class T>
    static INLINE bool call(T a, T b) { return is_true(a) ^ is_true(b); }
};
struct LogicalNot {
    static constexpr bool signless = true;
    template <class T>
    static INLINE bool call(T a) { return !is_true(a); }
};

template <class T>
INLINE bool nan(T a) { return a != a; }
template <class T>
INLINE bool nan(Complex<T> a) { return (a.re != a.re) | (a.im != a.im); }
template <class T>
INLINE bool infinite(T a) {
    if constexpr (std::is_floating_point_v<T>)
        return std::fabs(a) > std::numeric_limits<T>::max();
    else
        return false;
}
template <class T>
INLINE bool infinite(Complex<T> a) { return infinite(a.re) | infinite(a.im); }

struct IsNan {
    static constexpr bool signless = true;
    template <class T>
    static INLINE bool call(T a) { return nan(a); }
};
struct IsInf {
    static constexpr bool signless = true;
    template <class T>
    static INLINE bool call(T a) { return infinite(a); }
};
struct IsFinite {
    static constexpr bool signless = true;
    template <class T>
    static INLINE bool call(T a) { return !(nan(a) | infinite(a)); }
};
struct SignBit {
    template <class T>
    static INLINE bool call(T a) {
        if constexpr (std::is_same_v<T, float>)
            return bits<int32_t>(a) < 0;
        else if constexpr (std::is_same_v<T, double>)
            return bits<int64_t>(a) < 0;
        else
            return a < T(0);
    }
};

}  // namespace

int register_comparison(PyObject *m) {
    with_constants<Equal, 2, 0b10, Bool>(
        declare<Equal, 2, Bool>(m, "equal", Bools{}, Integers{}, Floats{}, Complexes{}), Usual{});
    with_constants<NotEqual, 2, 0b10, Bool>(
        declare<NotEqual, 2, Bool>(m, "not_equal", Bools{}, Integers{}, Floats{}, Complexes{}), Usual{});
    with_constants<Less, 2, 0b10, Bool>(
        declare<Less, 2, Bool>(m, "less", Bools{}, Integers{}, Floats{}), Usual{});
    with_constants<LessEqual, 2, 0b10, Bool>(
        declare<LessEqual, 2, Bool>(m, "less_equal", Bools{}, Integers{}, Floats{}), Usual{});
    with_constants<Greater, 2, 0b10, Bool>(
        declare<Greater, 2, Bool>(m, "greater", Bools{}, Integers{}, Floats{}), Usual{});
    with_constants<GreaterEqual, 2, 0b10, Bool>(
        declare<GreaterEqual, 2, Bool>(m, "greater_equal", Bools{}, Integers{}, Floats{}), Usual{});
    declare<LogicalAnd, 2, Bool>(m, "logical_and", Bools{}, Integers{}, Floats{}, Complexes{});
    declare<LogicalOr, 2, Bool>(m, "logical_or", Bools{}, Integers{}, Floats{}, Complexes{});
    declare<LogicalXor, 2, Bool>(m, "logical_xor", Bools{}, Integers{}, Floats{}, Complexes{});
    declare<LogicalNot, 1, Bool>(m, "logical_not", Bools{}, Integers{}, Floats{}, Complexes{});
    declare<IsNan, 1, Bool>(m, "isnan", Bools{}, Integers{}, Floats{}, Complexes{});
    declare<IsInf, 1, Bool>(m, "isinf", Bools{}, Integers{}, Floats{}, Complexes{});
    declare<IsFinite, 1, Bool>(m, "isfinite", Bools{}, Integers{}, Floats{}, Complexes{});
    declare<SignBit, 1, Bool>(m, "signbit", Bools{}, Integers{}, Floats{});
    return PyErr_Occurred() ? -1 : 0;
}
