// Elementary functions without branches or calls, which the compiler vectorises inside a loop.
//
// float: 2 ULP or better; what would lose digits is computed in double. double: 2 ULP or better, or
// the C library's function where no vector form is written. NaN, infinities and signed zeros follow
// the C library. `narrow*` and `wide*` take any argument but those that `TRIG_LIMIT` bounds.
#pragma once
#include "kernels/pointwise/coefficients.h"
#include "common.h"

namespace vec {

template <class T, size_t N, size_t I = 0>
INLINE T poly(T x, const T (&c)[N]) {
    if constexpr (I + 1 == N)
        return c[I];
    else
        return c[I] + x * poly<T, N, I + 1>(x, c);
}

// Adding and subtracting it rounds to an integer (ties to even).
template <class T>
struct Round;
template <>
struct Round<float> {
    static constexpr float magic = 12582912.0f;  // 1.5 * 2^23
};
template <>
struct Round<double> {
    static constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52
};
template <class T>
INLINE T round_small(T x) { return (x + Round<T>::magic) - Round<T>::magic; }

INLINE float with_sign(float magnitude, float sign) {
    return bits<float>((bits<uint32_t>(magnitude) & 0x7fffffffu) | (bits<uint32_t>(sign) & 0x80000000u));
}
INLINE double with_sign(double magnitude, double sign) {
    constexpr uint64_t top = uint64_t(1) << 63;
    return bits<double>((bits<uint64_t>(magnitude) & ~top) | (bits<uint64_t>(sign) & top));
}

// x between a negative and a positive limit. Their bits are compared, as integers whose order is the
// floats' own on that side: a compiler that has to mind NaN makes more of a comparison of floats.
// NaN becomes one of the limits.
INLINE float between(float x, float low, float high) {
    int32_t u = bits<int32_t>(x), top = bits<int32_t>(high);
    uint32_t v = uint32_t(u < top ? u : top), bottom = bits<uint32_t>(low);
    return bits<float>(v < bottom ? v : bottom);
}
INLINE double between(double x, double low, double high) {
    int64_t u = bits<int64_t>(x), top = bits<int64_t>(high);
    uint64_t v = uint64_t(u < top ? u : top), bottom = bits<uint64_t>(low);
    return bits<double>(v < bottom ? v : bottom);
}
INLINE float at_most(float x, float high) {  // for positive x
    int32_t u = bits<int32_t>(x), top = bits<int32_t>(high);
    return bits<float>(u < top ? u : top);
}

// 2^n, for n within the exponents of normal numbers
template <class T>
INLINE T power_of_two(int n);
template <>
INLINE float power_of_two<float>(int n) { return bits<float>(uint32_t(n + 127) << 23); }
template <>
INLINE double power_of_two<double>(int n) { return bits<double>(uint64_t(int64_t(n) + 1023) << 52); }

constexpr float INF32 = std::numeric_limits<float>::infinity();
constexpr double INF64 = std::numeric_limits<double>::infinity();
constexpr double LN2 = 0.693147180559945309, LOG2E = 1.44269504088896341;
constexpr double PI_2 = 1.57079632679489662, PI = 3.14159265358979324;

template <class T>
INLINE T scale(T x, int n) {  // in two steps: 2^n itself may lie outside the range
    int half = n >> 1;
    return x * power_of_two<T>(half) * power_of_two<T>(n - half);
}

// ---- exponentials -------------------------------------------------------------------------------

INLINE float reduce_exp(float x, int &n) {
    float k = round_small(x * 1.44269504f);
    n = int(k);
    return (x - k * 0.693359375f) - k * -2.12194440e-4f;
}
INLINE double reduce_exp(double x, int &n) {
    double k = round_small(x * LOG2E);
    n = int(k);
    return (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
}

// exp(x) for x from -87 to 88.7
INLINE float exp_within(float x) {
    float shifted = x * 1.44269504f + Round<float>::magic, k = shifted - Round<float>::magic;
    float r = (x - k * 0.693359375f) - k * -2.12194440e-4f;
    float e = 1.0f + (r + r * r * poly(r, EXP32));
    return (e + e) * bits<float>((bits<uint32_t>(shifted) << 23) + 0x3f000000u);  // 2^(k - 1)
}

INLINE float exp(float x) {
    int n;
    float r = reduce_exp(between(x, -104.0f, 89.0f), n);
    float e = scale(1.0f + (r + r * r * poly(r, EXP32)), n);
    return x == x ? e : x;
}

INLINE double exp(double x) {
    int n;
    double r = reduce_exp(between(x, -746.0, 710.0), n);
    double e = scale(1.0 + (r + r * r * poly(r, EXP64)), n);
    return x == x ? e : x;
}

// To ten digits, for results that are rounded to float: arguments within ±700.
INLINE double exp_short(double x) {
    int n;
    double r = reduce_exp(x, n);
    return power_of_two<double>(n) * (1.0 + (r + r * r * poly(r, EXPD)));
}

INLINE float exp2(float x) {
    float c = between(x, -151.0f, 129.0f), k = round_small(c), r = (c - k) * 0.693147181f;
    float e = scale(1.0f + (r + r * r * poly(r, EXP32)), int(k));
    return x == x ? e : x;
}

INLINE double exp2(double x) {
    double c = between(x, -1076.0, 1025.0), k = round_small(c), r = (c - k) * LN2;
    double e = scale(1.0 + (r + r * r * poly(r, EXP64)), int(k));
    return x == x ? e : x;
}

INLINE float expm1(float x) {
    int n;
    float r = reduce_exp(between(x, -18.0f, 89.0f), n);
    float e = r + r * r * poly(r, EXP32), half = power_of_two<float>(n - 1);
    float result = 2.0f * (half * e + (half - 0.5f));
    return std::fabs(x) > 1e-8f ? result : x;  // also NaN
}

INLINE double expm1(double x) {
    int n;
    double r = reduce_exp(between(x, -38.0, 710.0), n);
    double e = r + r * r * poly(r, EXP64), half = power_of_two<double>(n - 1);
    double result = 2.0 * (half * e + (half - 0.5));
    return std::fabs(x) > 1e-17 ? result : x;
}

// ---- logarithms ---------------------------------------------------------------------------------

// x = 2^k (1 + f) with 1 + f from √½ to √2; x > 0, normal
INLINE float split_log(float x, float &k) {
    uint32_t u = bits<uint32_t>(x) - 0x3f3504f3u;
    k = float(int32_t(u) >> 23);
    return bits<float>((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
}
INLINE double split_log(double x, double &k) {
    constexpr uint64_t sqrt_half = 0x3fe6a09e667f3bcdull;
    uint64_t u = bits<uint64_t>(x) + (0x3ff0000000000000ull - sqrt_half);
    k = bits<double>((u >> 52) + 0x4330000000000000ull) - (4503599627370496.0 + 1023.0);
    return bits<double>((u & 0x000fffffffffffffull) + sqrt_half) - 1.0;
}

INLINE float log(float x) {
    bool tiny = x < 1.17549435e-38f;
    float k, y = tiny ? x * 8388608.0f : x;
    float f = split_log(y, k);
    k = tiny ? k - 23.0f : k;
    float tail = f * f * (f * poly(f, LOG32) - 0.5f);
    float r = k * 0.693359375f + (f + (tail + k * -2.12194440e-4f));
    r = x < INF32 ? r : x;
    r = x == 0.0f ? -INF32 : r;
    return x < 0.0f ? std::numeric_limits<float>::quiet_NaN() : r;
}

// For x > 0, normal, finite.
INLINE double log_normal(double x) {
    double k, f = split_log(x, k);
    double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
    double rest = s * (half + z * poly(z, LOG64));
    return k * 6.93147180369123816490e-01 - ((half - (rest + k * 1.90821492927058770002e-10)) - f);
}

INLINE double log(double x) {
    bool tiny = x < 2.2250738585072014e-308;
    double r = log_normal(tiny ? x * 4503599627370496.0 : x);
    r = tiny ? r - 52.0 * LN2 : r;
    r = x < INF64 ? r : x;
    r = x == 0.0 ? -INF64 : r;
    return x < 0.0 ? std::numeric_limits<double>::quiet_NaN() : r;
}

template <class T>
INLINE T log1p(T x) {
    T u = T(1) + x, lost = x - (u - T(1));
    T r = log(u);
    bool correct = (u > T(0)) & (u < std::numeric_limits<T>::max());
    T fixed = correct ? r + lost / u : r;
    return x == T(0) ? x : fixed;
}

// Exact for powers of two, and those of ten.
INLINE double log2(double x) {
    bool tiny = x < 2.2250738585072014e-308, fits = (x > 0.0) & (x < INF64);
    double y = fits ? tiny ? x * 4503599627370496.0 : x : 1.0;
    double k, f = split_log(y, k);
    double part = log_normal(1.0 + f);
    k = tiny ? k - 52.0 : k;
    double r = k + part * LOG2E;
    return fits ? r : log(x);
}
INLINE double log10(double x) {
    bool tiny = x < 2.2250738585072014e-308, fits = (x > 0.0) & (x < INF64);
    double y = fits ? tiny ? x * 18014398509481984.0 : x : 1.0;
    uint64_t u = bits<uint64_t>(y);
    double exponent = bits<double>((u >> 52) + 0x4330000000000000ull) - (4503599627370496.0 + 1023.0);
    bool below = exponent < 0.0;  // from ½ up to 1 there, else from 1 up to 2
    double part = bits<double>((u & 0x000fffffffffffffull) | (below ? 0x3fe0000000000000ull : 0x3ff0000000000000ull));
    double k = below ? exponent + 1.0 : exponent;
    k = tiny ? k - 54.0 : k;
    double r = (k * 3.69423907715893078616e-13 + 0.434294481903251827651 * log_normal(part)) + k * 3.01029995663611771306e-01;
    return fits ? r : log(x);
}

INLINE float log2(float x) { return float(log(double(x)) * LOG2E); }
INLINE float log10(float x) { return float(log(double(x)) * 0.434294481903251828); }

// ---- trigonometry, for |x| up to TRIG_LIMIT -----------------------------------------------------

constexpr double TRIG_LIMIT = 1e6;
constexpr double PIO2_1 = 1.57079632673412561417e+00;  // 33 bits of π/2
constexpr double PIO2_2 = 6.07710050630396597660e-11;  // the next 33
constexpr double PIO2_3 = 2.02226624879595063154e-21;  // the rest

// sin(x + quarters π/2)
INLINE float sin_shifted(float x, int quarters) {
    double k = round_small(double(x) * 0.636619772367581343);
    float r = float((double(x) - k * PIO2_1) - k * (PIO2_2 + PIO2_3));
    int q = int(k) + quarters;
    float z = r * r;
    float s = r + r * z * poly(z, SIN32), c = 1.0f - (0.5f * z - z * z * poly(z, COS32));
    float value = q & 1 ? c : s;
    return bits<float>(bits<uint32_t>(value) ^ (uint32_t(q & 2) << 30));
}

INLINE double sin_shifted(double x, int quarters) {
    double k = round_small(x * 0.636619772367581343);
    double t = x - k * PIO2_1, w = k * PIO2_2, r = t - w;
    double low = ((t - r) - w) - k * PIO2_3;
    int q = int(k) + quarters;
    double z = r * r;
    double s = r + (r * z * poly(z, SIN64) + low * (1.0 - 0.5 * z));
    double half = 0.5 * z, c = 1.0 - half;
    c = c + (((1.0 - c) - half) + (z * z * poly(z, COS64) - r * low));
    double value = q & 1 ? c : s;
    return bits<double>(bits<uint64_t>(value) ^ (uint64_t(uint32_t(q & 2)) << 62));
}

template <class T>
INLINE T sin(T x) { return x == T(0) ? x : sin_shifted(x, 0); }
template <class T>
INLINE T cos(T x) { return sin_shifted(x, 1); }

INLINE float tan(float x) {
    double k = round_small(double(x) * 0.636619772367581343);
    double r = (double(x) - k * PIO2_1) - k * (PIO2_2 + PIO2_3), z = r * r;
    double s = r + r * z * poly(z, SIN64), c = 1.0 - (0.5 * z - z * z * poly(z, COS64));
    bool odd = int(k) & 1;
    double value = (odd ? -c : s) / (odd ? s : c);
    return x == 0.0f ? x : float(value);
}

INLINE double tan(double x) {
    double r = sin_shifted(x, 0) / sin_shifted(x, 1);
    return x == 0.0 ? x : r;
}

INLINE double atan_unit(double t) { return t * poly(t * t, ATAN); }  // 0 ≤ t ≤ 1

INLINE float atan(float x) {
    double a = std::fabs(double(x));
    bool steep = a > 1.0;
    double p = atan_unit(steep ? 1.0 / a : a);
    float r = with_sign(float(steep ? PI_2 - p : p), x);
    return x == x ? r : x;
}

INLINE float atan2(float y, float x) {
    double a = std::fabs(double(x)), b = std::fabs(double(y));
    bool steep = b > a;
    double top = steep ? a : b, bottom = steep ? b : a;
    double t = bottom == 0.0 ? 0.0 : top / bottom;
    t = (top == INF64) ? 1.0 : t;
    double p = atan_unit(t);
    p = steep ? PI_2 - p : p;
    p = bits<int32_t>(x) < 0 ? PI - p : p;
    float r = with_sign(float(p), y);
    return (x == x) & (y == y) ? r : x + y;
}

// atan of a ≥ 0, and of a quotient, by an angle of π/4 less where it is steep
INLINE double atan_positive(double top, double bottom) {
    double more = top - bottom, sum = top + bottom;
    bool middle = top > 0.4142135623730950 * bottom, high = top > 2.414213562373095 * bottom;
    double numerator = middle ? more : top, denominator = middle ? sum : bottom;
    double base = middle ? 0.5 * PI_2 : 0.0, low = middle ? 3.061616997868383018e-17 : 0.0;
    numerator = high ? -bottom : numerator, denominator = high ? top : denominator;
    base = high ? PI_2 : base, low = high ? 6.123233995736766036e-17 : low;
    double t = numerator / denominator;
    t = denominator == 0.0 ? 0.0 : t;
    double z = t * t;
    return base + (t + (t * z * poly(z, ATAN64) + low));
}
INLINE double atan(double x) {
    double a = std::fabs(x);
    double r = with_sign(atan_positive(a < 1e300 ? a : 1e300, 1.0), x);
    return x == x ? r : x;
}
INLINE double atan2(double y, double x) {
    double a = std::fabs(x), b = std::fabs(y), largest = a > b ? a : b;
    double down = largest > 1e300 ? 0x1p-100 : largest < 1e-280 ? 0x1p100 : 1.0;
    bool both = (a == INF64) & (b == INF64);
    double p = atan_positive(both ? 1.0 : b == INF64 ? 1e300 : b * down,
                             both ? 1.0 : b == INF64 ? 1.0 : a == INF64 ? 1e300 : a * down);
    p = a == INF64 ? both ? 0.5 * PI_2 : 0.0 : p;
    bool left = bits<int64_t>(x) < 0;
    p = left ? PI - (p - 1.2246467991473532e-16) : p;
    double r = with_sign(p, y);
    return (x == x) & (y == y) ? r : x + y;
}

// asin of a ≤ ½, or half of π/2 - asin of a > ½
INLINE double asin_part(double a) {
    bool outer = a > 0.5;
    double z = outer ? 0.5 * (1.0 - a) : a * a, s = outer ? std::sqrt(z) : a;
    return s * poly(z, ASIN);
}
INLINE double asin_rest(double a, double &root) {  // what asin of the root has beyond it
    bool outer = a > 0.5;
    double z = outer ? 0.5 * (1.0 - a) : a * a;
    root = outer ? std::sqrt(z) : a;
    return root * z * poly(z, ASIN64);
}
INLINE double asin(double x) {
    double a = std::fabs(x), s, rest = asin_rest(a, s);
    double outer = PI_2 - (2.0 * (s + rest) - 6.123233995736766036e-17);
    double r = with_sign(a > 0.5 ? outer : s + rest, x);
    return a <= 1.0 ? r : std::numeric_limits<double>::quiet_NaN();
}
INLINE double acos(double x) {
    double a = std::fabs(x), s, rest = asin_rest(a, s), signed_ = with_sign(s + rest, x);
    double inner = PI_2 - (signed_ - 6.123233995736766036e-17), p = 2.0 * (s + rest);
    double outer = x < 0.0 ? PI - (p - 1.2246467991473532e-16) : p;
    return a <= 1.0 ? a > 0.5 ? outer : inner : std::numeric_limits<double>::quiet_NaN();
}
INLINE float asin(float x) {
    double a = std::fabs(double(x)), p = asin_part(a);
    float r = with_sign(float(a > 0.5 ? PI_2 - 2.0 * p : p), x);
    return a <= 1.0 ? r : std::numeric_limits<float>::quiet_NaN();
}
INLINE float acos(float x) {
    double a = std::fabs(double(x)), p = asin_part(a);
    double inner = PI_2 - (x < 0.0f ? -p : p), outer = x < 0.0f ? PI - 2.0 * p : 2.0 * p;
    return a <= 1.0 ? float(a > 0.5 ? outer : inner) : std::numeric_limits<float>::quiet_NaN();
}

// ---- hyperbolic functions -----------------------------------------------------------------------

INLINE float tanh(float x) {
    double a = std::fabs(double(x)), z = a * a;
    double outer = 1.0 - 2.0 / (exp_short(2.0 * (a < 10.0 ? a : 10.0)) + 1.0);
    double inner = a - a * z * (1.0 / 3.0 - z * (2.0 / 15.0));
    float r = with_sign(float(a < 0.02 ? inner : outer), x);
    return x == x ? r : x;
}
INLINE double tanh(double x) {
    double a = std::fabs(x);
    double e = expm1(2.0 * (a < 20.0 ? a : 20.0));
    double r = with_sign(e / (e + 2.0), x);
    return x == x ? r : x;
}

INLINE float sinh(float x) {
    double a = std::fabs(double(x));
    double e = exp_short(a < 100.0 ? a : 100.0);
    float r = with_sign(a < 0.01 ? float(a + a * a * a * (1.0 / 6.0)) : float(0.5 * (e - 1.0 / e)), x);
    return x == x ? r : x;
}
INLINE float cosh(float x) {
    double a = std::fabs(double(x));
    double e = exp_short(a < 100.0 ? a : 100.0);
    return x == x ? float(0.5 * (e + 1.0 / e)) : x;
}
INLINE float asinh(float x) {
    double a = std::fabs(double(x));
    float r = with_sign(float(log1p(a + a * a / (1.0 + std::sqrt(a * a + 1.0)))), x);
    return (x == x) & (a < INF64) ? r : x;
}
INLINE float acosh(float x) {
    double y = double(x) - 1.0;
    float r = float(log1p(y + std::sqrt(y * (double(x) + 1.0))));
    return x < 1.0f ? std::numeric_limits<float>::quiet_NaN() : r;
}
INLINE float atanh(float x) {
    double a = std::fabs(double(x));
    float r = with_sign(float(0.5 * log1p(2.0 * a / (1.0 - a))), x);
    return a <= 1.0 ? r : std::numeric_limits<float>::quiet_NaN();
}

INLINE double sinh(double x) {
    double a = std::fabs(x), c = a < 709.0 ? a : 709.0, e = expm1(c);
    double far = exp(0.5 * a), r = a < 709.0 ? 0.5 * (e + e / (e + 1.0)) : 0.5 * far * far;
    return x == x ? with_sign(r, x) : x;
}
INLINE double cosh(double x) {
    double a = std::fabs(x), e = exp(a < 709.0 ? a : 709.0);
    double far = exp(0.5 * a), r = a < 709.0 ? 0.5 * e + 0.5 / e : 0.5 * far * far;
    return x == x ? r : x;
}
INLINE double asinh(double x) {
    double a = std::fabs(x), c = a < 1e150 ? a : 1.0;
    double near = log1p(c + c * c / (1.0 + std::sqrt(c * c + 1.0)));
    double r = with_sign(a < 1e150 ? near : log(a) + LN2, x);
    return x == x ? r : x;
}
INLINE double acosh(double x) {
    double c = x < 1e150 ? x : 1.0, y = c - 1.0;
    double near = log1p(y + std::sqrt(y * (c + 1.0))), r = x < 1e150 ? near : log(x) + LN2;
    return x < 1.0 ? std::numeric_limits<double>::quiet_NaN() : r;
}
INLINE double atanh(double x) {
    double a = std::fabs(x), r = with_sign(0.5 * log1p(2.0 * a / (1.0 - a)), x);
    return a <= 1.0 ? r : std::numeric_limits<double>::quiet_NaN();
}

INLINE float hypot(float x, float y) {
    float r = float(std::sqrt(double(x) * x + double(y) * y));
    return (std::fabs(x) == INF32) | (std::fabs(y) == INF32) ? INF32 : r;
}
INLINE double hypot(double x, double y) {  // scaled by a power of two, so that squares neither overflow nor vanish
    double a = std::fabs(x), b = std::fabs(y), largest = a > b ? a : b;
    double down = largest > 1e150 ? 0x1p-600 : largest < 1e-150 ? 0x1p600 : 1.0;
    double up = largest > 1e150 ? 0x1p600 : largest < 1e-150 ? 0x1p-600 : 1.0;
    double r = std::sqrt(a * down * (a * down) + b * down * (b * down)) * up;
    return (a == INF64) | (b == INF64) ? INF64 : r;
}

// ---- error function, activations ----------------------------------------------------------------

INLINE float erf(float x) {
    float a = std::fabs(x), c = at_most(a, 4.0f);
    float inner = x + x * poly(at_most(x * x, 1.0f), ERF_SMALL32);
    float outer = with_sign(1.0f - exp_within(poly(c, ERFC_LOG32)), x);
    float r = a < 0.95f ? inner : outer;
    return x == x ? r : x;
}

INLINE double erf(double x) {
    double a = std::fabs(x);
    double inner = x * poly(a < 1.0 ? x * x : 1.0, ERF_SMALL64);
    double t = a > 0.9 ? (a < 6.0 ? a : 6.0) : 0.9, w = 1.0 / (t + 2.0);
    double outer = with_sign(1.0 - exp(-t * t) * poly((t - 2.0) * w, ERFCX64) * (2.0 * w), x);
    double r = a < 0.95 ? inner : outer;
    return x == x ? r : x;
}

// exp(-half a²). The square is formed from the leading bits of `a`, exactly, and a rest, because its
// rounding would be magnified by its own size.
INLINE float exp_of_square(float a, float half) {
    float top = bits<float>(bits<uint32_t>(a) & 0xfffff000u);
    float square = half * top * top, rest = half * (a - top) * (a + top);
    int n;
    float c = square < 104.0f ? -square : -104.0f;
    float r = reduce_exp(c, n) - rest;
    float e = scale(1.0f + (r + r * r * poly(r, EXP32)), n);
    return square < 104.0f ? e : 0.0f;
}

INLINE double erfcx_positive(double t) {  // exp(t²) erfc(t) for t from 0 to 28
    double bottom = t + 2.0, lost = t - (bottom - 2.0), w = 1.0 / bottom;
    double rest = (1.0 - w * bottom) - w * lost;  // what the roundings of sum and quotient left out
    double r = poly((t - 2.0) * w, ERFCX_ALL64) * (2.0 * w);
    return r + r * rest;
}
INLINE double erfc(double x) {
    double a = std::fabs(x), t = a < 28.0 ? a : 28.0;
    double top = bits<double>(bits<uint64_t>(t) & 0xfffffffff8000000ull);  // its square is exact
    double rest = (t - top) * (t + top), leading = exp(-top * top);  // rest < 1e-4
    double e = (leading - leading * (rest * (1.0 - rest * (0.5 - rest * (1.0 / 6.0))))) * erfcx_positive(t);
    double inner = 1.0 - x * poly(a < 0.5 ? x * x : 0.25, ERF_SMALL64);
    double r = x < 0.0 ? 2.0 - e : e;
    r = a < 0.5 ? inner : r;
    return x == x ? r : x;
}

INLINE float erfc(float x) {
    double t = std::fabs(double(x)), w = 1.0 / (t + 2.0);
    t = t < 20.0 ? t : 20.0;
    double e = double(exp_of_square(std::fabs(x), 1.0f)) * poly((t - 2.0) * w, ERFCX) * (2.0 * w);
    return x == x ? float(x < 0.0f ? 2.0 - e : e) : x;
}

// exp(-x²/2) and Φ(x), the distribution function of the normal law. The square is formed as in
// `exp_of_square`; what is less than 2^-126 is 0.
struct Normal {
    float exponential, cdf;
};
INLINE Normal normal(float x) {
    float c = at_most(std::fabs(x), 13.25f);  // there it is 0
    float top = bits<float>(bits<uint32_t>(c) & 0xfffff000u), low = c - top;
    float square = -0.5f * top * top;
    float shifted = square * 1.44269504f + Round<float>::magic, k = shifted - Round<float>::magic;
    float r = (square - k * 0.693359375f) - k * -2.12194440e-4f - low * (top + 0.5f * low);
    float e = (1.0f + (r + r * r * poly(r, EXP32))) *
              bits<float>((bits<uint32_t>(shifted) << 23) + 0x3f800000u);
    float bottom = c + 3.0f, w = 1.0f / bottom, above = e * poly((c - 3.0f) * w, MILLS32);
    float tail = above * w;
    tail = 1.5f * (tail + (above - tail * bottom) * w);  // with what the quotient's roundings left out
    return {e, x < 0.0f ? tail : 1.0f - tail};
}

INLINE float sigmoid(float x) {
    constexpr float edge = 88.72f;  // beyond it exp overflows
    float e = exp_within(between(-x, -87.0f, edge)), s = 1.0f + e, w = 1.0f / s;
    w = w - (w * (1.0f - (s - e))) * w;  // the rounding of the sum, where e is large
    float other = x != x ? x : 0.0f;
    return x >= -edge ? w : other;
}
INLINE double sigmoid(double x) {
    double e = exp(-x), s = 1.0 + e, w = 1.0 / s;
    // the roundings of the sum and, where there is a fused multiply-add, of the quotient
    double less = e < 1.0 ? e : 1.0, more = e > 1.0 ? e : 1.0, rest = -w * (less - (s - more));
    rest += 1.0 - w * s;
    return e < 1e300 ? w + w * rest : w;
}

// ---- powers -------------------------------------------------------------------------------------

INLINE float pow(float x, float y) {
    double a = std::fabs(double(x)), b = double(y);
    double l = log(a);
    double t = b * l;
    t = t < 700.0 ? t : 700.0;
    t = t > -700.0 ? t : -700.0;
    double r = exp_short(t);
    float magnitude = float(r);
    magnitude = (a == 1.0) | (y == 0.0f) ? 1.0f : magnitude;
    bool whole = std::rint(y) == y, odd = whole & (std::rint(0.5f * y) != 0.5f * y);
    float signed_ = odd ? with_sign(magnitude, x) : magnitude;
    float result = (x < 0.0f) & (a < INF64) & !whole ? std::numeric_limits<float>::quiet_NaN() : signed_;
    bool nan = ((x != x) & (y != 0.0f)) | ((y != y) & (x != 1.0f));
    return nan ? x + y : result;
}

}  // namespace vec
