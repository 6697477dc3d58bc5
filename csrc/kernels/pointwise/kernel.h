// A pointwise kernel: for each dtype a loop over contiguous elements. The call (kernel.cpp) does the
// rest once for all: Python numbers, broadcasting, strides, the result's layout, threads, overlap.
#pragma once
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "common.h"

constexpr int MAX_IN = 6;

// p[0], p[1], … are inputs, the last is the result. Nonzero: an integer was divided by zero.
using Loop = int (*)(npy_intp n, char *const *p);

// A loop for operands of which some, by their bits in `which`, are one element each for all.
struct ConstantLoop {
    Loop loop = nullptr;
    int which = 0;
};

struct Entry {
    Loop loop = nullptr;
    ConstantLoop constant[2];
    DType in[MAX_IN] = {NONE, NONE, NONE, NONE, NONE, NONE};
    DType out = NONE;
    int leader = 0;  // the operand whose layout the result takes first
};

struct Kernel {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *name, *twin;
    int nin, key;  // key: the first operand that has the common dtype
    double defaults[MAX_IN];
    int nrequired;
    Entry table[DTYPES];
};

extern PyTypeObject KernelType;
Kernel *make_kernel(PyObject *module, const char *name, int nin);

// A function of arrays with its own calling convention. NotImplemented hands the call to the twin.
using Native = PyObject *(*)(PyObject *const *args, Py_ssize_t n, PyObject *names);
int make_function(PyObject *module, const char *name, Native native);

struct Named {
    const char *name;
    Native native;
};
inline int make_functions(PyObject *module, std::initializer_list<Named> functions) {
    for (const Named &f : functions)
        if (make_function(module, f.name, f.native)) return -1;
    return 0;
}

// The operands of one run, broadcast to `shape`; strides in bytes.
constexpr int MAX_OPERANDS = MAX_IN + 1;
struct Operand {
    char *data;
    npy_intp strides[NPY_MAXDIMS];
    npy_intp size;
};
int run_loop(Loop loop, int ndim, npy_intp *shape, int count, Operand *operands,
             const ConstantLoop *constant = nullptr);

// ---- declaring loops ----------------------------------------------------------------------------

template <class Op, class R, class A>
CLONES int loop1(npy_intp n, char *const *p) {
    const A *a = (const A *)p[0];
    R *r = (R *)p[1];
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        auto y = Op::call(widen(a[i]));
        r[i] = Narrow<R, decltype(y)>::from(y);
    }
    return 0;
}

template <class Op, class R, class A, class B>
CLONES int loop2(npy_intp n, char *const *p) {
    const A *a = (const A *)p[0];
    const B *b = (const B *)p[1];
    R *r = (R *)p[2];
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        auto y = Op::call(widen(a[i]), widen(b[i]));
        r[i] = Narrow<R, decltype(y)>::from(y);
    }
    return 0;
}

template <class Op, class R, class A, class B, class C>
CLONES int loop3(npy_intp n, char *const *p) {
    const A *a = (const A *)p[0];
    const B *b = (const B *)p[1];
    const C *c = (const C *)p[2];
    R *r = (R *)p[3];
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        auto y = Op::call(widen(a[i]), widen(b[i]), widen(c[i]));
        r[i] = Narrow<R, decltype(y)>::from(y);
    }
    return 0;
}

// As `loop1` … `loop5`, of operands of one type; those in `which` are one element for all.
template <class Op, class R, int which, class A, int... k>
CLONES int constant_loop(npy_intp n, char *const *p) {
    R *r = (R *)p[sizeof...(k)];
    const A constants[] = {(which >> k & 1 ? *(const A *)p[k] : A())...};
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        auto y = Op::call(widen(which >> k & 1 ? constants[k] : ((const A *)p[k])[i])...);
        r[i] = Narrow<R, decltype(y)>::from(y);
    }
    return 0;
}

template <class Op, class R, class A>
CLONES int loop4(npy_intp n, char *const *p) {
    const A *a = (const A *)p[0], *b = (const A *)p[1], *c = (const A *)p[2], *d = (const A *)p[3];
    R *r = (R *)p[4];
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        auto y = Op::call(widen(a[i]), widen(b[i]), widen(c[i]), widen(d[i]));
        r[i] = Narrow<R, decltype(y)>::from(y);
    }
    return 0;
}

template <class Op, class R, class A>
CLONES int loop5(npy_intp n, char *const *p) {
    const A *a = (const A *)p[0], *b = (const A *)p[1], *c = (const A *)p[2], *d = (const A *)p[3],
            *e = (const A *)p[4];
    R *r = (R *)p[5];
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        auto y = Op::call(widen(a[i]), widen(b[i]), widen(c[i]), widen(d[i]), widen(e[i]));
        r[i] = Narrow<R, decltype(y)>::from(y);
    }
    return 0;
}

// Between half precision and float, by the processor's own instructions where it has them.
void widen_all(const Half *from, float *to, npy_intp n);
void narrow_all(const float *from, Half *to, npy_intp n);
void widen_all(const BFloat *from, float *to, npy_intp n);
void narrow_all(const float *from, BFloat *to, npy_intp n);

// Elements of two bytes: in float, block by block.
template <class Op, class R, int N, class H>
int half_loop(npy_intp n, char *const *p) {
    constexpr npy_intp block = 512;
    constexpr bool narrows = std::is_same_v<R, H>;
    using Found = std::conditional_t<narrows, float, R>;
    alignas(64) float buffers[N + narrows][block];
    char *q[N + 1];
    int bad = 0;
    for (npy_intp i = 0; i < n; i += block) {
        npy_intp m = n - i < block ? n - i : block;
        for (int k = 0; k < N; k++) {
            widen_all((const H *)p[k] + i, buffers[k], m);
            q[k] = (char *)buffers[k];
        }
        q[N] = narrows ? (char *)buffers[N + narrows - 1] : p[N] + i * npy_intp(sizeof(R));
        if constexpr (N == 1) bad |= loop1<Op, Found, float>(m, q);
        if constexpr (N == 2) bad |= loop2<Op, Found, float, float>(m, q);
        if constexpr (N == 3) bad |= loop3<Op, Found, float, float, float>(m, q);
        if constexpr (N == 4) bad |= loop4<Op, Found, float>(m, q);
        if constexpr (N == 5) bad |= loop5<Op, Found, float>(m, q);
        if constexpr (narrows) narrow_all(buffers[N], (H *)p[N] + i, m);
    }
    return bad;
}

// How the result's type follows from the operands'.
struct Same {
    template <class T>
    using of = T;
};
struct Bool {
    template <class T>
    using of = bool;
};
template <class T>
struct RealOf {
    using type = T;
};
template <class T>
struct RealOf<Complex<T>> {
    using type = T;
};
struct Real {
    template <class T>
    using of = typename RealOf<T>::type;
};

// In a list of types: one that is computed in float block by block, where a loop of its own would be
// as large and hardly faster.
template <class T>
struct InBlocks {};
template <class T>
struct ElementOf {
    using type = T;
    static constexpr bool in_blocks = std::is_same_v<T, Half>;
};
template <class T>
struct ElementOf<InBlocks<T>> {
    using type = T;
    static constexpr bool in_blocks = true;
};
using CostlyFloats = Types<Half, InBlocks<BFloat>, float, double>;

// The type whose loop is taken: unsigned where the function says that a sign makes no difference.
template <class Op, class = void>
struct is_signless : std::false_type {};
template <class Op>
struct is_signless<Op, std::enable_if_t<Op::signless>> : std::true_type {};
template <class T, bool unsign>
struct LoopTypeOf {
    using type = T;
};
template <class T>
struct LoopTypeOf<T, true> {
    using type = std::make_unsigned_t<T>;
};
template <class Op, class T>
using LoopType =
    typename LoopTypeOf<T, is_signless<Op>::value && std::is_integral_v<T> && !std::is_same_v<T, bool>>::type;

template <class Op, class Result, int N, class Listed>
void add_loop(Kernel *k) {
    using T = typename ElementOf<Listed>::type;
    using L = LoopType<Op, T>;
    using R = typename Result::template of<L>;
    Entry &e = k->table[DTypeOf<T>::value];
    if constexpr (ElementOf<Listed>::in_blocks) e.loop = half_loop<Op, R, N, T>;
    else if constexpr (N == 1) e.loop = loop1<Op, R, L>;
    else if constexpr (N == 2) e.loop = loop2<Op, R, L, L>;
    else if constexpr (N == 3) e.loop = loop3<Op, R, L, L, L>;
    else if constexpr (N == 4) e.loop = loop4<Op, R, L>;
    else if constexpr (N == 5) e.loop = loop5<Op, R, L>;
    for (int i = 0; i < N; i++) e.in[i] = DTypeOf<T>::value;
    e.out = DTypeOf<typename Result::template of<T>>::value;
}

template <class Op, class Result, int N, class... T>
void add_loops(Kernel *k, Types<T...>) {
    (add_loop<Op, Result, N, T>(k), ...);
}

template <class Op, class Result, int which, class T, int... k>
void add_constant_loop(Kernel *kernel, std::integer_sequence<int, k...>) {
    Entry &e = kernel->table[DTypeOf<T>::value];
    ConstantLoop &c = e.constant[e.constant[0].loop ? 1 : 0];
    using L = LoopType<Op, T>;
    c = {constant_loop<Op, typename Result::template of<L>, which, L, k...>, which};
}

// Loops for calls in which the operands in `which`, bit by bit, are numbers.
template <class Op, int N, int which, class Result = Same, class... T>
void with_constants(Kernel *kernel, Types<T...>) {
    (add_constant_loop<Op, Result, which, T>(kernel, std::make_integer_sequence<int, N>()), ...);
}

// The types whose loops are worth it.
using Usual = Types<float, double, int64_t>;
using UsualFloats = Types<float, double>;

// declare<Add, 2, Same>(module, "add", Bools{}, Integers{}, …)
template <class Op, int N, class Result = Same, class... Groups>
Kernel *declare(PyObject *module, const char *name, Groups... groups) {
    Kernel *k = make_kernel(module, name, N);
    if (k) (add_loops<Op, Result, N>(k, groups), ...);
    return k;
}

inline void set_defaults(Kernel *k, int required, const double *values) {
    k->nrequired = required;
    for (int i = required; i < k->nin; i++) k->defaults[i] = values[i - required];
}
