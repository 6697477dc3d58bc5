// Orthogonal polynomials of degree n (rounded towards zero; of a negative one 0) by their recurrences
// p_{k+1} = (a x + b) p_k - c p_{k-1}, p_0 = 1: see `flambeau/ops/special/polynomials.py`.
#include "kernels/pointwise/kernel.h"

namespace {

template <class T>
struct Step {
    T a, b, c;
};

// p_1 = first · x + shift, and the same step for all k.
template <int FIRST, int SHIFT, int A, int B>
struct Chebyshev {
    template <class T>
    static T first(T x) { return T(FIRST) * x + T(SHIFT); }
    template <class T>
    static Step<T> step(int) { return {T(A), T(B), T(1)}; }
};
template <int A>
struct Hermite {
    template <class T>
    static T first(T x) { return T(A) * x; }
    template <class T>
    static Step<T> step(int k) { return {T(A), T(0), T(A * k)}; }
};
struct Laguerre {
    template <class T>
    static T first(T x) { return T(1) - x; }
    template <class T>
    static Step<T> step(int k) { return {T(-1) / T(k + 1), T(2 * k + 1) / T(k + 1), T(k) / T(k + 1)}; }
};
struct Legendre {
    template <class T>
    static T first(T x) { return x; }
    template <class T>
    static Step<T> step(int k) { return {T(2 * k + 1) / T(k + 1), T(0), T(k) / T(k + 1)}; }
};

template <class P>
struct Polynomial {
    template <class T>
    static T call(T x, T n) {
        if (!(n > T(-1)) || n > T(2147483646)) return T(0);
        int degree = int(n);
        if (degree == 0) return T(1);
        T before = 1, here = P::first(x);
        for (int k = 1; k < degree; k++) {
            Step<T> s = P::template step<T>(k);
            T next = (x * s.a + s.b) * here - before * s.c;
            before = here, here = next;
        }
        return here;
    }
};

using Both = Types<float, double>;

template <class P>
void add(PyObject *m, const char *name) { declare<Polynomial<P>, 2>(m, name, Both{}); }

}  // namespace

int register_polynomials(PyObject *m) {
    add<Chebyshev<1, 0, 2, 0>>(m, "chebyshev_polynomial_t");
    add<Chebyshev<2, 0, 2, 0>>(m, "chebyshev_polynomial_u");
    add<Chebyshev<2, -1, 2, 0>>(m, "chebyshev_polynomial_v");
    add<Chebyshev<2, 1, 2, 0>>(m, "chebyshev_polynomial_w");
    add<Chebyshev<2, -1, 4, -2>>(m, "shifted_chebyshev_polynomial_t");
    add<Chebyshev<4, -2, 4, -2>>(m, "shifted_chebyshev_polynomial_u");
    add<Chebyshev<4, -3, 4, -2>>(m, "shifted_chebyshev_polynomial_v");
    add<Chebyshev<4, -1, 4, -2>>(m, "shifted_chebyshev_polynomial_w");
    add<Hermite<2>>(m, "hermite_polynomial_h");
    add<Hermite<1>>(m, "hermite_polynomial_he");
    add<Laguerre>(m, "laguerre_polynomial_l");
    add<Legendre>(m, "legendre_polynomial_p");
    return PyErr_Occurred() ? -1 : 0;
}
