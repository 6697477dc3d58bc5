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

// A rational function in the middle, another in the tails, then Newton's iteration on erf or, in the tails, on log(erfc).
struct Erfinv {
    static double call(double y) {
        double a = std::fabs(y);
        if (!(a < 1)) return a == 1 ? std::copysign(vec::INF64, y) : std::nan("");
        if (a < 1e-8) return y * 0.886226925452758014;
        double x = rational(a);
        for (int i = 0; i < 2; i++) {
            double slope = 1.12837916709551257 * std::exp(-x * x);
            if (a < 0.5) {
                x -= (std::erf(x) - a) / slope;
            } else {
                double tail = std::erfc(x);
                x += std::log(tail / (1 - a)) * tail / slope;
            }
        }
        return std::copysign(x, y);
    }
    static INLINE double rational(double a) {  // of 0 ≤ a < 1, to nine digits
        double z = a * a;
        double middle = a * (((-0.140543331 * z + 0.914624893) * z - 1.645349621) * z + 0.886226899) /
                        ((((0.012229801 * z - 0.329097515) * z + 1.442710462) * z - 2.118377725) * z + 1);
        double t = std::sqrt(-vec::log((1 - a) * 0.5));
        double tail = (((1.641345311 * t + 3.429567803) * t - 1.624906493) * t - 1.970840454) /
                      ((1.637067800 * t + 3.543889200) * t + 1);
        return a <= 0.7 ? middle : tail;
    }
    static INLINE float call(float y) {
        double v = y, a = std::fabs(v);
        double x = std::copysign(rational(a < 1 ? a : 0.5), v);
        x -= (vec::erf(x) - v) * (0.886226925452758014 * vec::exp(x * x));
        double edge = a == 1 ? v * vec::INF64 : std::numeric_limits<double>::quiet_NaN();
        return float(a < 1 ? x : edge);
    }
};

struct Lgamma {
    static double call(double x) { return std::isinf(x) ? vec::INF64 : std::lgamma(x); }
    static float call(float x) { return float(call(double(x))); }
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
    declare<Erf, 1>(m, "erf", Floats{});
    declare<Erfc, 1>(m, "erfc", Floats{});
    declare<Erfinv, 1>(m, "erfinv", Floats{});
    declare<Lgamma, 1>(m, "lgamma", Floats{});
    declare<Digamma, 1>(m, "digamma", Floats{});
    declare<Gammainc, 2>(m, "gammainc", Floats{});
    declare<Gammaincc, 2>(m, "gammaincc", Floats{});
    declare<Zeta, 2>(m, "zeta", Types<float, double>{});
    declare<Polygamma, 2>(m, "polygamma", Floats{});
    using Wide = Types<float, double>;  // halves are rounded at each step
    declare<Entr, 1>(m, "entr", Wide{});
    declare<Xlogy, 2>(m, "xlogy", Wide{});
    declare<Xlog1py, 2>(m, "xlog1py", Wide{});
    with_constants<Logit, 2, 0b10>(declare<Logit, 2>(m, "logit", Wide{}), Wide{});
    declare<Sinc, 1>(m, "sinc", Floats{});
    declare<SphericalJ0, 1>(m, "spherical_j0", Wide{});
    return PyErr_Occurred() || make_function(m, "frexp", frexp_parts) ? -1 : 0;
}
