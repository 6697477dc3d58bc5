// x to the power of y in double precision, in vectors: exp(y log|x|), where the logarithm and the product
// are pairs of numbers, because an error of the exponent is magnified by its own size. 1 ULP or better.
// It is worth it, and right, only where the processor has a fused multiply-add.
#pragma once
#include "kernels/pointwise/vecmath.h"

namespace vec {

// A number as the sum of two, the second of which is what rounding left out of the first.
struct Pair {
    double high, low;
};

INLINE Pair times(Pair a, Pair b) {
    double high = a.high * b.high;
    return {high, std::fma(a.high, b.high, -high) + (a.high * b.low + a.low * b.high)};
}
INLINE Pair plus(double a, Pair b) {  // |a| > |b|, or a is 0
    double high = a + b.high;
    return {high, ((a - high) + b.high) + b.low};
}

// The coefficients 2/5, 2/7, … of log(1 + f) = 2s + s z (2/3 + 2/5 z + …), s = f / (2 + f), z = s²
constexpr double LOG_REST[] = {2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13, 2.0 / 15,
                               2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23, 2.0 / 25};

INLINE Pair log_pair(double x) {  // x > 0, normal or not
    bool tiny = x < 2.2250738585072014e-308;
    double k, f = split_log(tiny ? x * 4503599627370496.0 : x, k);
    k = tiny ? k - 52.0 : k;
    double bottom = 2.0 + f, lost = f - (bottom - 2.0), w = 1.0 / bottom, s = f * w;
    Pair root{s, (std::fma(-s, bottom, f) - s * lost) * w};
    Pair square{s * s, std::fma(s, s, -(s * s)) + 2.0 * s * root.low};
    Pair rest = plus(2.0 / 3, {square.high * poly(square.high, LOG_REST), 3.7007434154171886e-17});
    Pair cube = times(root, times(square, rest));
    Pair part = plus(2.0 * s, {cube.high, cube.low + 2.0 * root.low});
    Pair whole = plus(k * 6.93147180369123816490e-01, part);
    return {whole.high, whole.low + k * 1.90821492927058770002e-10};
}

// For positive, finite x, and finite y.
INLINE double pow_positive(double x, double y) {
    Pair log = log_pair(x);
    double high = y * log.high, low = std::fma(y, log.high, -high) + y * log.low;
    double c = between(high, -1000.0, 1000.0), k = round_small(c * LOG2E);
    double lead = c - k * 6.93147180369123816490e-01, tail = between(low, -1.0, 1.0) - k * 1.90821492927058770002e-10;
    double r = lead + tail, rest = (lead - r) + tail;
    return scale(1.0 + (r + (rest + r * r * poly(r, EXP64))), int(k));
}

// For x that is not 0, both finite.
INLINE double pow_finite(double x, double y) {
    double magnitude = pow_positive(std::fabs(x), y);
    bool whole = std::rint(y) == y, odd = std::rint(0.5 * y) != 0.5 * y;
    double signed_ = whole & odd ? with_sign(magnitude, x) : magnitude;
    return (x < 0.0) & !whole ? std::numeric_limits<double>::quiet_NaN() : signed_;
}

}  // namespace vec
