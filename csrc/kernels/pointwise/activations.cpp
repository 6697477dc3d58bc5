// Activations, and their gradients in one pass: grad times the derivative.
#include <type_traits>

#include "kernels/pointwise/complex_library.h"
#include "kernels/pointwise/kernel.h"
#include "kernels/pointwise/vecmath.h"

namespace {

struct Sigmoid {
    template <class T>
    static INLINE T call(T x) { return vec::sigmoid(x); }
    template <class T>
    static Complex<T> call(Complex<T> x) {
        Complex<T> unit = one<Complex<T>>();
        return unit / (unit + from_library(std::exp(to_library(-x))));
    }
};
struct Relu {
    template <class T>
    static INLINE T call(T x) { return x < T(0) ? T(0) : x; }
};
struct Gelu {  // x Φ(x)
    static INLINE float call(float x) { return x * vec::normal(x).cdf; }
    static INLINE double call(double x) {
        return x * (0.5 * vec::erfc(-x * 0.707106781186547524));
    }
};
template <class T>
constexpr T GELU_K = T(0.797884560802865356);  // √(2/π)
template <class T>
constexpr T GELU_C = T(0.044715);
struct GeluTanh {  // ½ (1 + tanh u) = sigmoid(2 u)
    template <class T>
    static INLINE T call(T x) {
        T u = GELU_K<T> * (x + GELU_C<T> * x * x * x);
        return x * vec::sigmoid(T(2) * u);
    }
};
template <class T>
INLINE Complex<T> one_and_exp(Complex<T> x) {  // 1 + exp(-x)
    T length = std::exp(-x.re);
    return {T(1) + length * std::cos(x.im), -length * std::sin(x.im)};
}
struct Silu {
    template <class T>
    static INLINE T call(T x) { return x * vec::sigmoid(x); }
    template <class T>
    static INLINE Complex<T> call(Complex<T> x) { return x / one_and_exp(x); }
};
struct Softplus {
    template <class T>
    static INLINE T call(T x, T beta, T threshold) {
        T scaled = beta * x;
        return scaled > threshold ? x : vec::log1p(vec::exp(scaled)) / beta;
    }
};
struct Mish {
    template <class T>
    static INLINE T call(T x) { return x * vec::tanh(x > T(80) ? x : vec::log1p(vec::exp(x))); }
};
struct MishBackward {  // with t = tanh(softplus(x)): t + x sigmoid(x) (1 - t²)
    template <class T>
    static INLINE T call(T grad, T x) {
        T t = vec::tanh(x > T(80) ? x : vec::log1p(vec::exp(x)));
        return grad * (t + x * vec::sigmoid(x) * (T(1) - t * t));
    }
};
struct LogSigmoid {
    template <class T>
    static INLINE T call(T x) {
        return (x < T(0) ? x : x == x ? T(0) : x) - vec::log1p(vec::exp(x < T(0) ? x : -x));
    }
};
struct LogSigmoidBackward {
    template <class T>
    static INLINE T call(T grad, T x) { return grad * vec::sigmoid(-x); }
};
struct LeakyRelu {
    template <class T>
    static INLINE T call(T x, T slope) { return x > T(0) ? x : x * slope; }
};
struct Elu {
    template <class T>
    static INLINE T call(T x, T alpha, T scale, T input_scale) {
        return x > T(0) ? x * scale : vec::expm1(x * input_scale) * (alpha * scale);
    }
};
struct Hardtanh {
    template <class T>
    static INLINE T call(T x, T lo, T hi) {
        T r = x < lo ? lo : x;
        return r > hi ? hi : r;
    }
};
struct Threshold {
    template <class T>
    static INLINE T call(T x, T limit, T value) { return x <= limit ? value : x; }
};

struct ReluBackward {
    template <class T>
    static INLINE T call(T grad, T result) { return result <= T(0) ? T(0) : grad; }
};
struct ThresholdBackward {
    template <class T>
    static INLINE T call(T grad, T x, T limit) { return x <= limit ? T(0) : grad; }
};
struct SigmoidBackward {
    template <class T>
    static INLINE T call(T grad, T result) {
        return grad * conjugate(result * (one<T>() - result));
    }
};
struct TanhBackward {
    template <class T>
    static INLINE T call(T grad, T result) { return grad * conjugate(one<T>() - result * result); }
};
struct GeluBackward {  // Φ(x) + x φ(x)
    static INLINE float call(float grad, float x) {
        vec::Normal law = vec::normal(x);
        return grad * (law.cdf + x * (0.398942280f * law.exponential));
    }
    static INLINE double call(double grad, double x) {
        double phi = 0.5 * vec::erfc(-x * 0.707106781186547524);
        return grad * (phi + x * (0.398942280401432678 * vec::exp(-0.5 * x * x)));
    }
};
struct GeluTanhBackward {
    template <class T>
    static INLINE T call(T grad, T x) {
        T u = GELU_K<T> * (x + GELU_C<T> * x * x * x);
        T s = vec::sigmoid(T(2) * u), slope = GELU_K<T> * (T(1) + T(3) * GELU_C<T> * x * x);
        return grad * (s + T(2) * x * (s * (T(1) - s)) * slope);
    }
};
struct SiluBackward {
    template <class T>
    static INLINE T call(T grad, T x) {
        T s = vec::sigmoid(x);
        return grad * (s * (T(1) + x * (T(1) - s)));
    }
    template <class T>
    static INLINE Complex<T> call(Complex<T> grad, Complex<T> x) {
        Complex<T> s = one<Complex<T>>() / one_and_exp(x);
        return grad * conjugate(s * (one<Complex<T>>() + x * (one<Complex<T>>() - s)));
    }
};
struct SoftplusBackward {
    template <class T>
    static INLINE T call(T grad, T x, T beta, T threshold) {
        T scaled = beta * x;
        return scaled > threshold ? grad : grad * vec::sigmoid(scaled);
    }
};
struct LeakyReluBackward {
    template <class T>
    static INLINE T call(T grad, T x, T slope) { return x > T(0) ? grad : grad * slope; }
};
struct EluBackward {
    template <class T>
    static INLINE T call(T grad, T x, T alpha, T scale, T input_scale) {
        T steep = input_scale * (alpha * scale);
        return x <= T(0) ? grad * steep * vec::exp(x * input_scale) : grad * scale;
    }
};
struct EluBackwardOfResult {
    template <class T>
    static INLINE T call(T grad, T y, T alpha, T scale, T input_scale) {
        return y <= T(0) ? grad * input_scale * (y + alpha * scale) : grad * scale;
    }
};
struct HardtanhBackward {
    template <class T>
    static INLINE T call(T grad, T x, T lo, T hi) { return (x <= lo) | (x >= hi) ? T(0) : grad; }
};

struct Hardsigmoid {
    template <class T>
    static INLINE T call(T x) { return Hardtanh::call(x + T(3), T(0), T(6)) / T(6); }
};
struct HardsigmoidBackward {
    template <class T>
    static INLINE T call(T grad, T x) { return (x > T(-3)) & (x < T(3)) ? grad / T(6) : T(0); }
};
struct Hardswish {
    template <class T>
    static INLINE T call(T x) { return x * Hardtanh::call(x + T(3), T(0), T(6)) / T(6); }
};
struct HardswishBackward {
    template <class T>
    static INLINE T call(T grad, T x) {
        T middle = grad * (x / T(3) + T(0.5)), right = x < T(3) ? middle : grad;
        return x <= T(-3) ? T(0) : right;
    }
};
struct Hardshrink {
    template <class T>
    static INLINE T call(T x, T limit) { return (x >= -limit) & (x <= limit) ? T(0) : x; }
};
struct Softshrink {
    template <class T>
    static INLINE T call(T x, T limit) {
        T below = x < -limit ? x + limit : x * T(0);
        return x > limit ? x - limit : below;
    }
};
struct ShrinkBackward {
    template <class T>
    static INLINE T call(T grad, T x, T limit) { return (x >= -limit) & (x <= limit) ? T(0) : grad; }
};

}  // namespace

int register_activations(PyObject *m) {
    const double softplus[] = {1, 20}, slope[] = {0.01}, elu[] = {1, 1, 1}, hardtanh[] = {-1, 1};
    declare<Sigmoid, 1>(m, "sigmoid", CostlyFloats{}, Complexes{});
    declare<Relu, 1>(m, "relu", Integers{}, Floats{});
    declare<Gelu, 1>(m, "gelu", CostlyFloats{});
    declare<GeluTanh, 1>(m, "gelu_tanh", CostlyFloats{});
    declare<Silu, 1>(m, "silu", CostlyFloats{}, Complexes{});
    set_defaults(declare<Softplus, 3>(m, "softplus", CostlyFloats{}), 1, softplus);
    declare<Mish, 1>(m, "mish", CostlyFloats{});
    declare<MishBackward, 2>(m, "mish_backward", CostlyFloats{});
    declare<LogSigmoid, 1>(m, "logsigmoid", CostlyFloats{});
    declare<LogSigmoidBackward, 2>(m, "logsigmoid_backward", CostlyFloats{});
    Kernel *leaky_relu = declare<LeakyRelu, 2>(m, "leaky_relu", Floats{});
    set_defaults(leaky_relu, 1, slope);
    with_constants<LeakyRelu, 2, 0b10>(leaky_relu, UsualFloats{});
    set_defaults(declare<Elu, 4>(m, "elu", CostlyFloats{}), 1, elu);
    Kernel *clamped = declare<Hardtanh, 3>(m, "hardtanh", Integers{}, Floats{});
    set_defaults(clamped, 1, hardtanh);
    with_constants<Hardtanh, 3, 0b110>(clamped, UsualFloats{});
    with_constants<Threshold, 3, 0b110>(declare<Threshold, 3>(m, "threshold", Integers{}, Floats{}), UsualFloats{});
    declare<Hardsigmoid, 1>(m, "hardsigmoid", Floats{});
    declare<Hardswish, 1>(m, "hardswish", Floats{});
    declare<Hardshrink, 2>(m, "hardshrink", Floats{});
    declare<Softshrink, 2>(m, "softshrink", Floats{});
    declare<HardsigmoidBackward, 2>(m, "hardsigmoid_backward", Floats{});
    declare<HardswishBackward, 2>(m, "hardswish_backward", Floats{});
    declare<ShrinkBackward, 3>(m, "shrink_backward", Floats{});
    declare<ReluBackward, 2>(m, "relu_backward", Floats{});
    declare<ThresholdBackward, 3>(m, "threshold_backward", Floats{});
    declare<SigmoidBackward, 2>(m, "sigmoid_backward", Floats{}, Complexes{});
    declare<TanhBackward, 2>(m, "tanh_backward", Floats{}, Complexes{});
    declare<GeluBackward, 2>(m, "gelu_backward", CostlyFloats{});
    declare<GeluTanhBackward, 2>(m, "gelu_tanh_backward", CostlyFloats{});
    declare<SiluBackward, 2>(m, "silu_backward", CostlyFloats{}, Complexes{});
    set_defaults(declare<SoftplusBackward, 4>(m, "softplus_backward", CostlyFloats{}), 2, softplus);
    set_defaults(declare<LeakyReluBackward, 3>(m, "leaky_relu_backward", Floats{}), 2, slope);
    set_defaults(declare<EluBackward, 5>(m, "elu_backward", CostlyFloats{}), 2, elu);
    declare<EluBackwardOfResult, 5>(m, "elu_backward_of_result", CostlyFloats{});
    set_defaults(declare<HardtanhBackward, 4>(m, "hardtanh_backward", Floats{}), 2, hardtanh);
    return PyErr_Occurred() ? -1 : 0;
}
