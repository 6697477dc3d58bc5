// Error functions, gamma functions.
#include "kernel.h"
#include "vecmath.h"

namespace {

struct Erf {
    template <class T>
    static INLINE T call(T x) { return vec::erf(x); }
};
struct Erfc {
    static INLINE float call(float x) { return vec::erfc(x); }
    static INLINE double call(double x) { return std::erfc(x); }
};

// Winitzki's approximation, then Newton's iteration on erf or, in the tails, on log(erfc).
struct Erfinv {
    static double call(double y) {
        double a = std::fabs(y);
        if (!(a < 1)) return a == 1 ? std::copysign(vec::INF64, y) : std::nan("");
        if (a < 1e-8) return y * 0.886226925452758014;
        double l = std::log1p(-a * a), b = 4.33074675 + 0.5 * l;
        double x = std::sqrt(std::sqrt(b * b - l / 0.147) - b);
        for (int i = 0; i < 4; i++) {
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
    // A rational function in the middle, another in the tails, and a step of Newton's iteration.
    static INLINE float call(float y) {
        double v = y, a = std::fabs(v), z = v * v;
        double middle = v * (((-0.140543331 * z + 0.914624893) * z - 1.645349621) * z + 0.886226899) /
                        ((((0.012229801 * z - 0.329097515) * z + 1.442710462) * z - 2.118377725) * z + 1);
        double inside = a < 1 ? a : 0.5, t = std::sqrt(-vec::log((1 - inside) * 0.5));
        double tail = (((1.641345311 * t + 3.429567803) * t - 1.624906493) * t - 1.970840454) /
                      ((1.637067800 * t + 3.543889200) * t + 1);
        double x = a <= 0.7 ? middle : v < 0 ? -tail : tail;
        x -= (vec::erf(x) - v) * (0.886226925452758014 * vec::exp(x * x));
        double edge = a == 1 ? v * vec::INF64 : std::numeric_limits<double>::quiet_NaN();
        return float(a < 1 ? x : edge);
    }
};

struct Lgamma {
    static double call(double x) { return std::isinf(x) ? vec::INF64 : std::lgamma(x); }
    static float call(float x) { return float(call(double(x))); }
};

// Recurrence to x ≥ 10, then the asymptotic series; reflection on the left.
struct Digamma {
    static double call(double x) {
        if (x == 0) return std::copysign(vec::INF64, -x);
        if (x < 0) {
            if (x == std::floor(x)) return std::nan("");
            double whole, part = std::modf(x, &whole);
            return call(1 - x) - vec::PI / std::tan(vec::PI * part);
        }
        double r = 0;
        for (; x < 10; x += 1) r -= 1 / x;
        double z = 1 / (x * x);
        double series = z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 -
                        z * (5.0 / 660 - z * (691.0 / 32760 - z / 12))))));
        return r + std::log(x) - 0.5 / x - (x < 1e17 ? series : 0);
    }
    static float call(float x) { return float(call(double(x))); }
};

}  // namespace

int register_special(PyObject *m) {
    declare<Erf, 1>(m, "erf", Floats{});
    declare<Erfc, 1>(m, "erfc", Floats{});
    declare<Erfinv, 1>(m, "erfinv", Floats{});
    declare<Lgamma, 1>(m, "lgamma", Floats{});
    declare<Digamma, 1>(m, "digamma", Floats{});
    return PyErr_Occurred() ? -1 : 0;
}
