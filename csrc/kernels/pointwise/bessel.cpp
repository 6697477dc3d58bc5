// Bessel's functions of the orders 0 and 1, Airy's, and those of the normal distribution: sums of
// Chebyshev polynomials near 0, and of inverse powers behind a leading term far from it. All are
// computed in double precision.
#include "kernels/pointwise/coefficients.h"
#include "kernels/pointwise/kernel.h"
#include "kernels/pointwise/vecmath.h"

namespace {

constexpr double NOTHING = std::numeric_limits<double>::quiet_NaN();

// Σ c[k] T_k(t) for t in [-1, 1], by Clenshaw's recurrence.
INLINE double sum_of(const double *c, int n, double t) {
    double before = 0, here = 0;
    for (int k = n - 1; k > 0; k--) {
        double next = 2 * t * here - before + c[k];
        before = here, here = next;
    }
    return t * here - before + c[0];
}

template <int N>
INLINE double sum_on(const double (&c)[N], double x, double low, double high) {
    return sum_of(c, N, (2 * x - low - high) / (high - low));
}

// One argument, in double precision whatever the type.
template <double function(double)>
struct Wide1 {
    static double call(double x) { return function(x); }
    static float call(float x) { return float(function(double(x))); }
};

// As `sum_on`, with its terms written out: for loops over elements that are vectors.
template <int N>
INLINE double unrolled_sum_on(const double (&c)[N], double x, double low, double high) {
    double t = (2 * x - low - high) / (high - low), before = 0, here = 0;
#pragma GCC unroll 64
    for (int k = N - 1; k > 0; k--) {
        double next = 2 * t * here - before + c[k];
        before = here, here = next;
    }
    return t * here - before + c[0];
}

// A function with one formula near 0 and another far from it, as `Op` says, each in vectors; a block of
// elements is computed by those that it needs. Beyond `Op::LIMIT` the C library's functions are used.
enum Side { NEAR = 1, FAR = 2, BEYOND = 4 };

template <class Op>
CLONES int sides(const double *x, npy_intp n) {
    int found = 0;
    for (npy_intp i = 0; i < n; i++) {
        int away = std::fabs(x[i]) > Op::LIMIT ? BEYOND : FAR;
        found |= Op::is_far(x[i]) ? away : NEAR;
    }
    return found;
}
template <class Op>
CLONES void near_loop(const double *x, npy_intp n, double *r) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) r[i] = Op::near(x[i]);
}
template <class Op>
CLONES void far_loop(const double *x, npy_intp n, double *r) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) r[i] = Op::far(x[i]);
}

template <class Op>
void two_sided(const double *x, npy_intp n, double *near, double *far) {
    int found = sides<Op>(x, n);
    if (found & BEYOND) {
        for (npy_intp i = 0; i < n; i++) near[i] = Op::library(x[i]);
        return;
    }
    if (found & NEAR) near_loop<Op>(x, n, near);
    if (found & FAR) far_loop<Op>(x, n, far);
    for (npy_intp i = 0; (found & FAR) && i < n; i++) near[i] = Op::is_far(x[i]) ? far[i] : near[i];
}

template <class Op, class T>
int two_sided_loop(npy_intp n, char *const *p) {
    constexpr npy_intp block = 512;
    double x[block], near[block], far[block];
    for (npy_intp i = 0; i < n; i += block) {
        npy_intp m = n - i < block ? n - i : block;
        std::copy((const T *)p[0] + i, (const T *)p[0] + i + m, x);
        two_sided<Op>(x, m, near, far);
        std::copy(near, near + m, (T *)p[1] + i);
    }
    return 0;
}
template <class Op>
void declare_two_sided(PyObject *module, const char *name) {
    Kernel *k = make_kernel(module, name, 1);
    if (!k) return;
    for (DType type : {F4, F8}) {
        Entry &e = k->table[type];
        e.loop = type == F4 ? two_sided_loop<Op, float> : two_sided_loop<Op, double>;
        e.in[0] = e.out = type;
    }
}

// ---- first and second kind ----------------------------------------------------------------------

// P cos χ - Q sin χ and P sin χ + Q cos χ times √(2/(πx)), χ = x - (2 order + 1) π/4, of cos x and sin x.
template <int order>
INLINE void hankel(double x, double c, double s, double &first, double &second) {
    double w = 64 / (x * x);
    double p = order ? unrolled_sum_on(HANKEL_P1, w, 0, 1) : unrolled_sum_on(HANKEL_P0, w, 0, 1);
    double q = (order ? unrolled_sum_on(HANKEL_Q1, w, 0, 1) : unrolled_sum_on(HANKEL_Q0, w, 0, 1)) / x;
    double cosine = order ? s - c : c + s, sine = order ? -(c + s) : s - c;
    double scale = 1 / std::sqrt(vec::PI * x);
    first = scale * (p * cosine - q * sine);
    second = scale * (p * sine + q * cosine);
}

template <int order>
struct FirstKind {
    static constexpr double LIMIT = vec::TRIG_LIMIT;
    static INLINE bool is_far(double x) { return std::fabs(x) > 8; }
    static INLINE double near(double x) {
        double sum = order ? unrolled_sum_on(BESSEL_J1, x * x, 0, 64) : unrolled_sum_on(BESSEL_J0, x * x, 0, 64);
        return order ? x * sum : sum;
    }
    static INLINE double far_of(double x, double c, double s) {
        double first, second;
        hankel<order>(std::fabs(x), c, s, first, second);
        return order && x < 0 ? -first : first;
    }
    static INLINE double far(double x) {
        double y = std::fabs(x);
        return far_of(x, vec::cos(y), vec::sin(y));
    }
    static double library(double x) {
        double y = std::fabs(x);
        return !is_far(x) ? near(x) : std::isinf(y) ? NOTHING : far_of(x, std::cos(y), std::sin(y));
    }
};

template <int order>
struct SecondKind {
    static constexpr double LIMIT = vec::TRIG_LIMIT;
    static INLINE bool is_far(double x) { return std::fabs(x) > 8; }
    static INLINE double near(double x) {
        double logarithmic = 2 / vec::PI * vec::log(x / 2) * FirstKind<order>::near(x);
        double r = order ? logarithmic - 2 / vec::PI / x + x * unrolled_sum_on(BESSEL_Y1, x * x, 0, 64)
                         : logarithmic + unrolled_sum_on(BESSEL_Y0, x * x, 0, 64);
        return x == 0 ? -vec::INF64 : x < 0 ? NOTHING : r;
    }
    static INLINE double far_of(double x, double c, double s) {
        double first, second;
        hankel<order>(std::fabs(x), c, s, first, second);
        return x < 0 ? NOTHING : second;
    }
    static INLINE double far(double x) { return far_of(x, vec::cos(x), vec::sin(x)); }
    static double library(double x) {
        return !is_far(x) ? near(x) : std::isinf(x) ? NOTHING : far_of(x, std::cos(x), std::sin(x));
    }
};

// ---- modified -----------------------------------------------------------------------------------

template <int order>
INLINE double scaled_first(double x) {  // exp(-|x|) I(x)
    double y = std::fabs(x), close = y > 8 ? 8 : y, far = y > 8 ? y : 8;
    double near = order ? x * unrolled_sum_on(BESSEL_I1, close, 0, 8) : unrolled_sum_on(BESSEL_I0, close, 0, 8);
    double outer = (order ? unrolled_sum_on(FAR_I1, 8 / far, 0, 1) : unrolled_sum_on(FAR_I0, 8 / far, 0, 1)) / std::sqrt(far);
    outer = order ? vec::with_sign(outer, x) : outer;
    outer = y == vec::INF64 ? order ? vec::with_sign(0.0, x) : 0.0 : outer;
    return y > 8 ? outer : near;
}

template <int order>
INLINE double modified_first(double x) {
    double y = std::fabs(x), scaled = scaled_first<order>(x);
    double half = vec::exp(y / 2);  // the whole may overflow where the product does not
    double r = y < 700 ? vec::exp(y) * scaled : half * scaled * half;
    return y == vec::INF64 ? NOTHING : r;
}

struct ScaledI0 {
    template <class T>
    static INLINE T call(T x) { return T(scaled_first<0>(x)); }
};
struct ScaledI1 {
    template <class T>
    static INLINE T call(T x) { return T(scaled_first<1>(x)); }
};
struct ModifiedI0 {
    template <class T>
    static INLINE T call(T x) { return T(modified_first<0>(x)); }
};
struct ModifiedI1 {
    template <class T>
    static INLINE T call(T x) { return T(modified_first<1>(x)); }
};

// K(x), times exp(x) where it is `scaled`.
template <int order, bool scaled>
struct ModifiedSecond {
    static constexpr double LIMIT = vec::INF64;
    static INLINE bool is_far(double x) { return x > 2; }
    static INLINE double near(double x) {
        double logarithm = vec::log(x / 2), z = x * x, c = x < 2 ? x : 2, e = vec::exp(c);
        double first = e * (order ? x * unrolled_sum_on(BESSEL_I1, c, 0, 8) : unrolled_sum_on(BESSEL_I0, c, 0, 8));
        double r = order ? 1 / x + logarithm * first + x * unrolled_sum_on(BESSEL_K1, z, 0, 4)
                         : unrolled_sum_on(BESSEL_K0, z, 0, 4) - logarithm * first;
        r = scaled ? e * r : r;
        return x == 0 ? vec::INF64 : x > 0 ? r : NOTHING;
    }
    static INLINE double far(double x) {
        double r = (order ? unrolled_sum_on(FAR_K1, 2 / x, 0, 1) : unrolled_sum_on(FAR_K0, 2 / x, 0, 1)) / std::sqrt(x);
        return scaled ? r : x == vec::INF64 ? 0 : vec::exp(-x) * r;
    }
    static double library(double x) { return is_far(x) ? far(x) : near(x); }
};

// ---- Airy's -------------------------------------------------------------------------------------

template <int N>
constexpr int count(const double (&)[N]) { return N; }

double airy(double x) {
    static const struct {
        const double *c;
        int n;
    } pieces[] = {{AIRY_0, count(AIRY_0)}, {AIRY_1, count(AIRY_1)}, {AIRY_2, count(AIRY_2)},
                  {AIRY_3, count(AIRY_3)}, {AIRY_4, count(AIRY_4)}, {AIRY_5, count(AIRY_5)},
                  {AIRY_6, count(AIRY_6)}, {AIRY_7, count(AIRY_7)}, {AIRY_8, count(AIRY_8)},
                  {AIRY_9, count(AIRY_9)}, {AIRY_10, count(AIRY_10)}};
    if (std::isnan(x) || std::isinf(x)) return NOTHING;
    double y = std::fabs(x), zeta = 2 * y * std::sqrt(y) / 3;
    if (x >= 2)
        return std::exp(-zeta) / std::sqrt(std::sqrt(y)) *
               sum_on(AIRY_RIGHT, 1 / zeta, 0, 1 / (8 * std::sqrt(2.0) / 6));
    if (x >= -9) {
        int piece = int(std::floor(x)) + 9;
        return sum_of(pieces[piece].c, pieces[piece].n, 2 * (x - std::floor(x)) - 1);
    }
    double w = 324 / (zeta * zeta), c = std::cos(zeta), s = std::sin(zeta);
    double p = sum_on(AIRY_COS, w, 0, 1), q = sum_on(AIRY_SIN, w, 0, 1) / zeta;
    // of ζ - π/4, each times √2
    return (p * (c + s) + q * (s - c)) / (std::sqrt(2 * vec::PI) * std::sqrt(std::sqrt(y)));
}

// ---- normal distribution ------------------------------------------------------------------------

// exp(x²) erfc(x); what is far is negative
struct Erfcx {
    static constexpr double LIMIT = vec::INF64;
    static INLINE bool is_far(double x) { return x < 0; }
    static INLINE double near(double x) {
        double r = unrolled_sum_on(ERFCX_SUM, (x - 2) / (x + 2), -1, 1) / (1 + x / 2);
        return x > 1e8 ? 0.564189583547756287 / x : r;
    }
    static INLINE double far(double x) {
        double c = x > -26.8 ? x : -26.8;
        double whole = std::rint(c * 32) / 32, rest = c - whole;  // x² = whole² + rest (x + whole)
        double r = 2 * vec::exp(whole * whole) * vec::exp(rest * (c + whole)) - near(-c);
        return x < -26.7 ? vec::INF64 : r;
    }
    static double library(double x) { return is_far(x) ? far(x) : near(x); }
};
double erfcx(double x) { return Erfcx::library(x); }

constexpr double ROOT_HALF = 0.707106781186547524;

struct Ndtr {
    template <class T>
    static INLINE T call(T x) {
        if constexpr (std::is_same_v<T, float>) return x == x ? vec::normal(x).cdf : x;
        else return 0.5 * vec::erfc(-x * ROOT_HALF);
    }
};

struct LogNdtr {
    static constexpr double LIMIT = vec::INF64;
    static INLINE bool is_far(double x) { return x < -1; }
    static INLINE double near(double x) { return vec::log1p(-0.5 * vec::erfc(x * ROOT_HALF)); }
    static INLINE double far(double x) { return vec::log(Erfcx::near(-x * ROOT_HALF) / 2) - x * x / 2; }
    static double library(double x) { return is_far(x) ? far(x) : near(x); }
};

// The quantile of the lower tail, p ≤ 1/2, by Acklam's rational functions: to nine digits.
INLINE double rough_quantile(double p) {
    double t = std::sqrt(-2 * vec::log(p < 0.02425 ? p : 0.02425));
    double tail = (((((-7.784894002430293e-03 * t - 3.223964580411365e-01) * t - 2.400758277161838) * t -
                     2.549732539343734) * t + 4.374664141464968) * t + 2.938163982698783) /
                  ((((7.784695709041462e-03 * t + 3.224671290700398e-01) * t + 2.445134137142996) * t +
                    3.754408661907416) * t + 1);
    double q = p - 0.5, r = q * q;
    double middle = (((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r +
                       1.383577518672690e+02) * r - 3.066479806614716e+01) * r + 2.506628277459239) * q /
                    (((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r +
                       6.680131188771972e+01) * r - 1.328068155288572e+01) * r + 1);
    return p < 0.02425 ? tail : middle;
}

// A double's takes one step of Halley's iteration. Where the density has no digits left it stays rough.
constexpr double DEEP = 1e-280;
struct Ndtri {
    template <class T>
    static INLINE T call(T p) {
        bool inside = (p > T(0)) & (p < T(1)), low = p <= T(0.5);
        double tail = inside ? low ? double(p) : 1 - double(p) : 0.5, x = rough_quantile(tail);
        if constexpr (std::is_same_v<T, double>) {
            double density = 0.398942280401432678 * vec::exp(-x * x / 2);
            double step = (0.5 * vec::erfc(-x * ROOT_HALF) - tail) / density;
            x = tail < DEEP ? x : x - step / (1 + x * step / 2);
        }
        double r = low ? x : -x, edge = p == T(0) ? -vec::INF64 : p == T(1) ? vec::INF64 : NOTHING;
        return T(inside ? r : edge);
    }
};

CLONES bool any_deep(const double *p, npy_intp n) {
    int deep = 0;
    for (npy_intp i = 0; i < n; i++) deep |= (p[i] > 0) & (p[i] < DEEP);
    return deep;
}

// There Newton's step on log Φ instead.
int ndtri_loop(npy_intp n, char *const *q) {
    const double *p = (const double *)q[0];
    double *r = (double *)q[1];
    if (!any_deep(p, n)) return loop1<Ndtri, double, double>(n, q);
    for (npy_intp i = 0; i < n; i++) {
        r[i] = Ndtri::call(p[i]);
        if (!(p[i] > 0 && p[i] < DEEP)) continue;
        double tail = erfcx(-r[i] * ROOT_HALF) / 2;  // Φ(x) exp(x²/2)
        r[i] -= (std::log(tail) - r[i] * r[i] / 2 - std::log(p[i])) * tail / 0.398942280401432678;
    }
    return 0;
}

}  // namespace

int register_bessel(PyObject *m) {
    using Wide = Types<float, double>;
    declare_two_sided<FirstKind<0>>(m, "j0");
    declare_two_sided<FirstKind<1>>(m, "j1");
    declare_two_sided<SecondKind<0>>(m, "y0");
    declare_two_sided<SecondKind<1>>(m, "y1");
    declare<ScaledI0, 1>(m, "i0e", CostlyFloats{});
    declare<ScaledI1, 1>(m, "i1e", CostlyFloats{});
    declare<ModifiedI0, 1>(m, "i0", CostlyFloats{});
    declare<ModifiedI1, 1>(m, "i1", CostlyFloats{});
    declare<ModifiedI0, 1>(m, "modified_i0", Wide{});
    declare<ModifiedI1, 1>(m, "modified_i1", Wide{});
    declare_two_sided<ModifiedSecond<0, true>>(m, "k0e");
    declare_two_sided<ModifiedSecond<1, true>>(m, "k1e");
    declare_two_sided<ModifiedSecond<0, false>>(m, "k0");
    declare_two_sided<ModifiedSecond<1, false>>(m, "k1");
    declare<Wide1<airy>, 1>(m, "airy_ai", Wide{});
    declare_two_sided<Erfcx>(m, "erfcx");
    declare<Ndtr, 1>(m, "ndtr", CostlyFloats{});
    declare_two_sided<LogNdtr>(m, "log_ndtr");
    Kernel *quantile = declare<Ndtri, 1>(m, "ndtri", Wide{});
    if (quantile) quantile->table[F8].loop = ndtri_loop;
    return PyErr_Occurred() ? -1 : 0;
}
