// A pointwise kernel: for each dtype a loop over contiguous elements. The call (kernel.cpp) does the
// rest once for all: Python numbers, broadcasting, strides, the result's layout, threads, overlap.
#pragma once
#include <initializer_list>

#include "common.h"

constexpr int MAX_IN = 6;

// p[0], p[1], … are inputs, the last is the result. Nonzero: an integer was divided by zero.
using Loop = int (*)(npy_intp n, char *const *p);

struct Entry {
    Loop loop = nullptr;
    DType in[MAX_IN] = {NONE, NONE, NONE, NONE, NONE, NONE};
    DType out = NONE;
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
int run_loop(Loop loop, int ndim, npy_intp *shape, int count, Operand *operands);

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

template <class Op, class Result, int N, class T>
void add_loop(Kernel *k) {
    using R = typename Result::template of<T>;
    Entry &e = k->table[DTypeOf<T>::value];
    if constexpr (N == 1) e.loop = loop1<Op, R, T>;
    if constexpr (N == 2) e.loop = loop2<Op, R, T, T>;
    if constexpr (N == 3) e.loop = loop3<Op, R, T, T, T>;
    if constexpr (N == 4) e.loop = loop4<Op, R, T>;
    if constexpr (N == 5) e.loop = loop5<Op, R, T>;
    for (int i = 0; i < N; i++) e.in[i] = DTypeOf<T>::value;
    e.out = DTypeOf<R>::value;
}

template <class Op, class Result, int N, class... T>
void add_loops(Kernel *k, Types<T...>) {
    (add_loop<Op, Result, N, T>(k), ...);
}

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
