// Losses element by element, and their gradients in one pass: grad times the derivative.
#include "kernel.h"

namespace {

template <class T>
INLINE T clamped(T x, T limit) {  // to ±limit; NaN stays
    T r = x < -limit ? -limit : x;
    return r > limit ? limit : r;
}

struct SmoothL1 {
    template <class T>
    static INLINE T call(T x, T y, T beta) {
        T d = std::fabs(x - y);
        return d < beta ? T(0.5) * d * d / beta : d - T(0.5) * beta;
    }
};
struct SmoothL1Backward {
    template <class T>
    static INLINE T call(T grad, T x, T y, T beta) { return grad * clamped((x - y) / beta, T(1)); }
};
struct Huber {
    template <class T>
    static INLINE T call(T x, T y, T delta) {
        T d = std::fabs(x - y);
        return d < delta ? T(0.5) * d * d : delta * (d - T(0.5) * delta);
    }
};
struct HuberBackward {
    template <class T>
    static INLINE T call(T grad, T x, T y, T delta) { return grad * clamped(x - y, delta); }
};

}  // namespace

int register_losses(PyObject *m) {
    declare<SmoothL1, 3>(m, "smooth_l1", Floats{});
    declare<SmoothL1Backward, 4>(m, "smooth_l1_backward", Floats{});
    declare<Huber, 3>(m, "huber", Floats{});
    declare<HuberBackward, 4>(m, "huber_backward", Floats{});
    return PyErr_Occurred() ? -1 : 0;
}
