// Error functions, gamma functions.
#include "kernels/pointwise/kernel.h"
#include "kernels/pointwise/vecmath.h"

namespace {

struct Erf {
    template <class T>
    static INLINE T call(T x) { return vec::erf(x); }
};
struct Erfc {  // in vectors it loses a bit more than a function of its own may
    static INLINE float call(float x) { return vec::erfc(x); }
    static INLINE double call(double x) { return std::erfc(x); }
};

// Polynomials in w = -log(1 - y²), or its root where that is 5 or more: to eight digits. A double's
// takes one step of Halley's iteration, in the tails on erfc.
struct Erfinv {
    static INLINE double rough(double a) {  // of 0 ≤ a < 1
        static constexpr double inner[] = {
            1.50140935173, 0.246640289389, -0.00417732492193, -0.00125274841646, 0.000218263923146,
            -4.95974349511e-06, -3.4261759526e-06, 4.65428730485e-07, 1.64871770238e-08,
            -8.73983097409e-09, 4.35114717534e-10};
        static constexpr double outer[] = {
            4.03469141045, 1.00989088889, 0.000821127375962, -0.00065744881155, 0.00023036343428,
            -7.52166807614e-05, 2.93432619178e-05, -1.04870429382e-05, 4.947701628e-06,
            -5.55332463596e-06, 3.28975475253e-06, -3.07900697702e-07, -3.35818131439e-07,
            8.36064009112e-08};
        double w = -vec::log((1 - a) * (1 + a)), s = w - 2.5, t = std::sqrt(w) - 4.193033988749895;
        double middle = inner[10], tail = outer[13];
#pragma GCC unroll 16
        for (int k = 9; k >= 0; k--) middle = middle * s + inner[k];
#pragma GCC unroll 16
        for (int k = 12; k >= 0; k--) tail = tail * t + outer[k];
        return (w < 5 ? middle : tail) * a;
    }
    template <class T>
    static INLINE T call(T y) {
        T given = std::fabs(y);
        double a = given < T(1) ? double(given) : 0.25, x = rough(a);
        if constexpr (std::is_same_v<T, double>) {
            double slope = 1.12837916709551257 * vec::exp(-x * x);
            double step = (a < 0.5 ? vec::erf(x) - a : 1 - a - vec::erfc(x)) / slope;
            x = a < 1e-8 ? a * 0.886226925452758014 : x - step / (1 + x * step);
        }
        double edge = given == T(1) ? vec::INF64 : std::numeric_limits<double>::quiet_NaN();
        return T(vec::with_sign(given < T(1) ? x : edge, double(y)));
    }
};

struct Lgamma {
    static double call(double x) { return std::isinf(x) ? vec::INF64 : std::lgamma(x); }
    // Stirling's series behind x + 7, and a product that leads back from there; reflection on the left.
    static INLINE float call(float given) {
        double x = given;
        bool left = x < 0.5;
        double y = left ? 1 - x : x, part = x - vec::round_small(x);
        bool near = y < 7;
        double product = near ? y * (y + 1) * (y + 2) * (y + 3) * (y + 4) * (y + 5) * (y + 6) : 1.0;
        double z = near ? y + 7 : y, w = 1 / (z * z);
        double series = (1.0 / 12 - w * (1.0 / 360 - w * (1.0 / 1260 - w * (1.0 / 1680 - w * (1.0 / 1188 -
                         w * (691.0 / 360360 - w * (1.0 / 156 - w * (3617.0 / 122400)))))))) / z;
        double stirling = (z - 0.5) * vec::log(z) - z + 0.918938533204672742 + series;
        double sine = std::fabs(vec::sin(vec::PI * part));
        double r = (left ? -stirling : stirling) + vec::log(left ? vec::PI * product / sine : 1 / product);
        bool pole = left & ((part == 0) | (x < -8388608.0));
        r = pole | (y == vec::INF64) ? vec::INF64 : x == 1 ? 0 : r;   // log 1, without rounding
        return x == x ? float(r) : given;
    }
};

// Recurrence to where the asymptotic series is exact enough, then that; reflection on the left.
struct Digamma {
    static double call(double x) { return from(x, 10); }
    static float call(float x) { return float(from(x, 4)); }
    static double from(double x, double enough) {
        if (x == 0) return std::copysign(vec::INF64, -x);
        if (x < 0) {
            if (x == std::floor(x)) return std::nan("");
            double whole, part = std::modf(x, &whole);
            return from(1 - x, enough) - vec::PI / std::tan(vec::PI * part);
        }
        double r = 0;
        for (; x < enough; x += 1) r -= 1 / x;
        double z = 1 / (x * x);
        double series = z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 -
                        z * (5.0 / 660 - z * (691.0 / 32760 - z / 12))))));
        return r + std::log(x) - 0.5 / x - (x < 1e17 ? series : 0);
    }
};

// ---- incomplete gamma functions, zeta: what `kernels/pointwise/special_functions.py` has in NumPy ----------

// x^a e^-x / Γ(a), without loss where a is large.
double gamma_density(double a, double x) {
    double excess = (x - a) / a;
    if (a > 15 && std::fabs(excess) < 0.5) {
        double z = 1 / (a * a);
        double stirling = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 -
                           z * (1.0 / 1188 - z * (691.0 / 360360 - z / 156)))))) / a;
        return std::sqrt(a / (2 * vec::PI)) *
               std::exp(-a * (excess - std::log1p(excess)) - stirling);
    }
    return std::exp(a * std::log(x) - x - std::lgamma(a));
}

// P(a, x), or Q(a, x): the smaller by its power series or a continued fraction (Lentz's method), to
// about that precision.
double incomplete_gamma(double a, double x, bool upper, double precision) {
    if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (std::isinf(a) && std::isinf(x)))
        return std::nan("");
    if (x == 0 || std::isinf(a)) return upper;
    if (a == 0 || std::isinf(x)) return !upper;
    double part;
    bool low = x < a + 1;
    if (low) {
        double term = 1 / a, total = term;
        for (double k = 1; term > precision / 16 * total; k++) total += term *= x / (a + k);
        part = gamma_density(a, x) * total;
    } else {
        double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
        for (double k = 1; k < 10000; k++) {
            double factor = -k * (k - a);
            b += 2;
            d = 1 / (factor * d + b), c = b + factor / c, h *= c * d;
            if (std::fabs(c * d - 1) <= 2 * precision) break;
        }
        part = gamma_density(a, x) * h;
    }
    return low == upper ? 1 - part : part;
}

struct Gammainc {
    static double call(double a, double x) { return incomplete_gamma(a, x, false, 2e-16); }
    static float call(float a, float x) { return float(incomplete_gamma(a, x, false, 1e-10)); }
};
struct Gammaincc {
    static double call(double a, double x) { return incomplete_gamma(a, x, true, 2e-16); }
    static float call(float a, float x) { return float(incomplete_gamma(a, x, true, 1e-10)); }
};

// y^-s; by products where s is a small whole number.
static double inverse_power(double y, double s) {
    if (!(s >= 0 && s <= 6) || s != std::floor(s)) return std::pow(y, -s);
    double result = 1, factor = 1 / y;
    for (unsigned n = unsigned(s); n; n >>= 1, factor *= factor)
        if (n & 1) result *= factor;
    return result;
}

// Σ (k + q)^-s over k ≥ 0: the first terms, and Euler and Maclaurin's formula for the rest.
struct Zeta {
    static double call(double s, double q) { return from(s, q, 10); }
    static float call(float s, float q) { return float(from(s, q, 4)); }
    static double from(double s, double q, double terms) {
        // the even Bernoulli numbers over their factorials
        static const double numbers[] = {
            1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160,
            -691.0 / 1307674368000.0, 1.0 / 74724249600.0, -3617.0 / 10670622842880000.0,
            43867.0 / 5109094217170944000.0, -174611.0 / 802857662698291200000.0};
        bool whole = q == std::floor(q);
        if (s == 1) return vec::INF64;
        if (s < 1 || std::isnan(q)) return std::nan("");
        if (q <= 0 && whole) return vec::INF64;
        if (std::isnan(s) || std::isinf(q)) return std::nan("");
        if (q <= 0 && (s != std::floor(s) || q <= -1e6)) return std::nan("");
        if (std::isinf(s)) return q > 1 ? std::nan("") : q == 1 ? 1 : vec::INF64;
        double enough = s < 190 ? terms + s : 200, total = 0, y = q;
        if (s > 1000 && q > 0) return std::pow(q, -s) + std::pow(q + 1, -s);
        for (double k = 1; y < enough; k++) {
            total += inverse_power(y, s);
            y = q + k;
        }
        total += inverse_power(y, s - 1) / (s - 1) + 0.5 * inverse_power(y, s);
        double rising = s, power = inverse_power(y, s + 1);
        for (int j = 0; j < 10; j++) {
            total += numbers[j] * rising * power;
            rising *= (s + 2 * j + 1) * (s + 2 * j + 2), power /= y * y;
        }
        return total;
    }
};

// ζ(2, x): the first terms, two at a time, and Euler and Maclaurin's formula; reflection on the left.
struct Trigamma {
    template <class T>
    static INLINE T call(T given) {
        constexpr int terms = std::is_same_v<T, double> ? 12 : 6;
        double x = double(given), total = 0;
        bool left = x < 0.5;
        double y = left ? 1 - x : x, part = x - vec::round_small(x);
#pragma GCC unroll 6
        for (int k = 0; k < terms; k += 2) {
            double a = (y + k) * (y + k), b = (y + (k + 1)) * (y + (k + 1));
            total += y < 1e6 ? (a + b) / (a * b) : 0.0;
        }
        double z = y < 1e6 ? y + terms : y, r = 1 / z, w = r * r;
        total += r + w * (0.5 + r * (1.0 / 6 - w * (1.0 / 30 - w * (1.0 / 42 - w * (1.0 / 30 - w * (5.0 / 66 - w * (691.0 / 2730)))))));
        double sine = vec::sin(vec::PI * part), outer = vec::PI * vec::PI / (sine * sine) - total;
        double found = left ? part == 0 ? vec::INF64 : outer : total;
        return T(x == x ? found : x);
    }
};

// The n-th derivative of digamma: (-1)^(n+1) n! ζ(n+1, x).
struct Polygamma {
    static double factor(double n) {
        static const double factorials[] = {1, 1, 2, 6, 24, 120, 720, 5040, 40320};
        double size = n <= 8 ? factorials[int(n)] : std::tgamma(n + 1);
        return std::fmod(n, 2) == 1 ? size : -size;
    }
    static double call(double x, double n) {
        if (n == 0) return Digamma::call(x);
        return std::isinf(x) && x > 0 ? 0 : factor(n) * Zeta::call(n + 1, x);
    }
    static float call(float x, float n) {
        if (n == 0) return Digamma::call(x);
        return std::isinf(x) && x > 0 ? 0 : float(factor(n) * Zeta::from(double(n) + 1, double(x), 4));
    }
};

// Of the first derivative a loop of its own.
template <class T>
int polygamma_loop(npy_intp n, char *const *p) {
    const T *x = (const T *)p[0], *orders = (const T *)p[1];
    bool first = true;
    for (npy_intp i = 0; first && i < n; i++) first = orders[i] == 1 && x[i] > -1e6;
    if (!first) return loop2<Polygamma, T, T, T>(n, p);
    char *q[] = {p[0], p[2]};
    return loop1<Trigamma, T, T>(n, q);
}

// ---- logarithms and sines with a value where they have none ---------------------------------------

struct Entr {  // -x log x
    template <class T>
    static INLINE T call(T x) {
        T inside = -x * vec::log(x), outside = x < T(0) ? -std::numeric_limits<T>::infinity() : std::fabs(x);
        return x > T(0) ? inside : outside;  // NaN stays NaN
    }
};
struct Xlogy {
    template <class T>
    static INLINE T call(T x, T y) { return x == T(0) && y == y ? T(0) : x * vec::log(y); }
};
struct Xlog1py {
    template <class T>
    static INLINE T call(T x, T y) { return x == T(0) && y == y ? T(0) : x * vec::log1p(y); }
};
struct Logit {  // log(x / (1 - x)), x first brought into [eps, 1 - eps] unless eps is negative
    template <class T>
    static INLINE T call(T x, T eps) {
        if (eps >= T(0)) x = x < eps ? eps : x > T(1) - eps ? T(1) - eps : x;
        return vec::log(x / (T(1) - x));
    }
};
struct Sinc {
    template <class T>
    static INLINE T call(T x) {
        T scaled = x * T(vec::PI);
        T sine;
        if constexpr (std::is_same_v<T, float>) sine = scaled < 1e6f ? scaled > -1e6f ? vec::sin(scaled) : std::sin(scaled) : std::sin(scaled);
        else sine = std::sin(scaled);
        return x == T(0) ? T(1) : sine / scaled;
    }
};
struct SphericalJ0 {
    template <class T>
    static INLINE T call(T x) {
        if (std::isinf(x)) return T(0);
        return x == T(0) ? T(1) : std::sin(x) / x;
    }
};

// frexp(x): mantissas in [1/2, 1), and exponents of 2.
template <class T>
void split(const T *x, T *mantissa, int32_t *exponent, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) {
        int e = 0;
        mantissa[i] = std::frexp(x[i], &e);
        exponent[i] = std::isfinite(x[i]) ? e : 0;
    }
}

PyObject *frexp_parts(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (names || n != 1 || !is_plain(args[0])) Py_RETURN_NOTIMPLEMENTED;
    PyArrayObject *x = (PyArrayObject *)args[0];
    int type = PyArray_TYPE(x);
    if (!PyArray_IS_C_CONTIGUOUS(x) || (type != NPY_FLOAT && type != NPY_DOUBLE)) Py_RETURN_NOTIMPLEMENTED;
    PyObject *mantissa = PyArray_SimpleNew(PyArray_NDIM(x), PyArray_DIMS(x), type);
    PyObject *exponent = PyArray_SimpleNew(PyArray_NDIM(x), PyArray_DIMS(x), NPY_INT32);
    if (!mantissa || !exponent) return Py_XDECREF(mantissa), Py_XDECREF(exponent), nullptr;
    int32_t *e = (int32_t *)PyArray_DATA((PyArrayObject *)exponent);
    void *m = PyArray_DATA((PyArrayObject *)mantissa), *from = PyArray_DATA(x);
    if (type == NPY_FLOAT) split((const float *)from, (float *)m, e, PyArray_SIZE(x));
    else split((const double *)from, (double *)m, e, PyArray_SIZE(x));
    return Py_BuildValue("(NN)", mantissa, exponent);
}

}  // namespace

int register_special(PyObject *m) {
    declare<Erf, 1>(m, "erf", CostlyFloats{});
    declare<Erfc, 1>(m, "erfc", CostlyFloats{});
    declare<Erfinv, 1>(m, "erfinv", CostlyFloats{});
    declare<Lgamma, 1>(m, "lgamma", CostlyFloats{});
    declare<Digamma, 1>(m, "digamma", CostlyFloats{});
    declare<Gammainc, 2>(m, "gammainc", CostlyFloats{});
    declare<Gammaincc, 2>(m, "gammaincc", CostlyFloats{});
    declare<Zeta, 2>(m, "zeta", Types<float, double>{});
    Kernel *polygamma = declare<Polygamma, 2>(m, "polygamma", CostlyFloats{});
    if (!polygamma) return -1;
    polygamma->table[F4].loop = polygamma_loop<float>, polygamma->table[F8].loop = polygamma_loop<double>;
    using Wide = Types<float, double>;  // halves are rounded at each step
    declare<Entr, 1>(m, "entr", Wide{});
    declare<Xlogy, 2>(m, "xlogy", Wide{});
    declare<Xlog1py, 2>(m, "xlog1py", Wide{});
    with_constants<Logit, 2, 0b10>(declare<Logit, 2>(m, "logit", Wide{}), Wide{});
    declare<Sinc, 1>(m, "sinc", CostlyFloats{});
    declare<SphericalJ0, 1>(m, "spherical_j0", Wide{});
    return PyErr_Occurred() || make_function(m, "frexp", frexp_parts) ? -1 : 0;
}
