// Comparison, logic, classification.
#include <algorithm>
#include <type_traits>

#include "kernels/pointwise/complex.h"
#include "kernels/pointwise/kernel.h"

Loop cast_loop(DType from, DType to);

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

// Of bools, as bytes.
struct LogicalAnd {
    static INLINE uint8_t call(uint8_t a, uint8_t b) { return a & b; }
};
struct LogicalOr {
    static INLINE uint8_t call(uint8_t a, uint8_t b) { return a | b; }
};
struct LogicalXor {
    static INLINE uint8_t call(uint8_t a, uint8_t b) { return a ^ b; }
};
struct LogicalNot {
    static INLINE uint8_t call(uint8_t a) { return a ^ 1; }
};

template <class Op, int N>
constexpr Loop byte_loop() {
    if constexpr (N == 1) return loop1<Op, uint8_t, uint8_t>;
    else return loop2<Op, uint8_t, uint8_t, uint8_t>;
}

// Elements that are no bools are made such, block by block.
template <class Op, int N, DType TYPE>
int logical_loop(npy_intp n, char *const *p) {
    constexpr npy_intp block = 1024;
    alignas(64) char truths[N][block];
    char *q[N + 1];
    Loop cast = cast_loop(TYPE, B1);
    const npy_intp size = size_of(TYPE);
    for (npy_intp i = 0; i < n; i += block) {
        npy_intp m = n - i < block ? n - i : block;
        for (int k = 0; k < N; k++) {
            char *from_to[] = {p[k] + i * size, truths[k]};
            cast(m, from_to);
            q[k] = truths[k];
        }
        q[N] = p[N] + i;
        byte_loop<Op, N>()(m, q);
    }
    return 0;
}

template <class Op, int N, class... T>
void add_logical_loops(Kernel *k, Types<T...>) {
    ((k->table[DTypeOf<T>::value].loop = logical_loop<Op, N, DTypeOf<T>::value>), ...);
}

template <class Op, int N>
void declare_logical(PyObject *m, const char *name) {
    Kernel *k = make_kernel(m, name, N);
    if (!k) return;
    add_logical_loops<Op, N>(k, Integers{}), add_logical_loops<Op, N>(k, Floats{});
    add_logical_loops<Op, N>(k, Complexes{});
    k->table[B1].loop = byte_loop<Op, N>();
    for (int type = 0; type < DTYPES; type++) {
        std::fill(k->table[type].in, k->table[type].in + N, DType(type));
        k->table[type].out = B1;
    }
}

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
    declare_logical<LogicalAnd, 2>(m, "logical_and");
    declare_logical<LogicalOr, 2>(m, "logical_or");
    declare_logical<LogicalXor, 2>(m, "logical_xor");
    declare_logical<LogicalNot, 1>(m, "logical_not");
    declare<IsNan, 1, Bool>(m, "isnan", Bools{}, Integers{}, Floats{}, Complexes{});
    declare<IsInf, 1, Bool>(m, "isinf", Bools{}, Integers{}, Floats{}, Complexes{});
    declare<IsFinite, 1, Bool>(m, "isfinite", Bools{}, Integers{}, Floats{}, Complexes{});
    declare<SignBit, 1, Bool>(m, "signbit", Bools{}, Integers{}, Floats{});
    return PyErr_Occurred() ? -1 : 0;
}
