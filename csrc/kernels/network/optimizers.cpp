// Steps of optimizers over all parameters in one call: the twins of `flambeau/kernels/network/optimizers.py`,
// with the same roundings (this file is compiled without contracted products and sums).
#include "kernels/network/array_lists.h"

namespace {

// ---- gradient descent ---------------------------------------------------------------------------

template <class T>
struct Descent {
    T sign, rate, inertia, fresh, decay;
    bool momentum, nesterov, decays;

    template <bool MOMENTUM, bool NESTEROV, bool DECAYS>
    INLINE void run(T *p, const T *grad, T *buffer, npy_intp n) const {
        T sign = this->sign, rate = this->rate, inertia = this->inertia, fresh = this->fresh,
          decay = this->decay;
        INDEPENDENT
        for (npy_intp i = 0; i < n; i++) {
            T g = sign * grad[i];
            if (DECAYS) g = g + decay * p[i];
            if (MOMENTUM) {
                T b = buffer[i] * inertia + fresh * g;
                buffer[i] = b;
                g = NESTEROV ? g + inertia * b : b;
            }
            p[i] = p[i] - g * rate;
        }
    }

    INLINE void step(T *p, const T *grad, T *buffer, npy_intp n) const {
        if (momentum && nesterov) decays ? run<1, 1, 1>(p, grad, buffer, n) : run<1, 1, 0>(p, grad, buffer, n);
        else if (momentum) decays ? run<1, 0, 1>(p, grad, buffer, n) : run<1, 0, 0>(p, grad, buffer, n);
        else decays ? run<0, 0, 1>(p, grad, buffer, n) : run<0, 0, 0>(p, grad, buffer, n);
    }
};

CLONES void descend(const Descent<float> &d, float *p, const float *g, float *b, npy_intp n) { d.step(p, g, b, n); }
CLONES void descend(const Descent<double> &d, double *p, const double *g, double *b, npy_intp n) { d.step(p, g, b, n); }

template <class T>
bool sgd(PyObject *params, PyObject *grads, PyObject *buffers, double lr, double momentum, double dampening,
         double decay, bool nesterov, bool maximize, int type) {
    Arrays p, g, b;
    if (!p.take(params, type) || !g.take(grads, type) || !g.fits(p)) return false;
    if (momentum != 0 && (!b.take(buffers, type) || !b.fits(p))) return false;
    Descent<T> d{T(maximize ? -1 : 1), T(lr), T(momentum), T(1 - dampening), T(decay), momentum != 0, nesterov, decay != 0};
    Py_BEGIN_ALLOW_THREADS
    over_all(p.sizes, [&](int i, npy_intp begin, npy_intp end) {
        descend(d, (T *)p.data[i] + begin, (const T *)g.data[i] + begin,
                momentum != 0 ? (T *)b.data[i] + begin : nullptr, end - begin);
    });
    Py_END_ALLOW_THREADS
    return true;
}

// sgd_step(params, grads, buffers, lr, momentum, dampening, weight_decay, nesterov, maximize): False
// if nothing has been done.
PyObject *sgd_step(PyObject *, PyObject *args) {
    PyObject *params, *grads, *buffers;
    double lr, momentum, dampening, decay;
    int nesterov, maximize;
    if (!PyArg_ParseTuple(args, "OOOddddpp", &params, &grads, &buffers, &lr, &momentum, &dampening, &decay,
                          &nesterov, &maximize))
        return nullptr;
    int type = type_of(params);
    bool done = type == NPY_FLOAT    ? sgd<float>(params, grads, buffers, lr, momentum, dampening, decay,
                                                  nesterov, maximize, type)
                : type == NPY_DOUBLE ? sgd<double>(params, grads, buffers, lr, momentum, dampening, decay,
                                                   nesterov, maximize, type)
                                     : false;
    return PyBool_FromLong(done);
}

// ---- Adam ---------------------------------------------------------------------------------------

template <class T>
struct Moments {
    T sign, rest1, keep2, rest2, small, decay, shrink;
    bool decays;

    template <bool DECAYS, bool GREATEST>
    INLINE void run(T *p, const T *grad, T *mean, T *square, T *greatest, T correction, T rate, npy_intp n) const {
        T sign = this->sign, rest1 = this->rest1, keep2 = this->keep2, rest2 = this->rest2,
          small = this->small, decay = this->decay, shrink = this->shrink;
        INDEPENDENT
        for (npy_intp i = 0; i < n; i++) {
            T x = p[i] * shrink, g = sign * grad[i];
            if (DECAYS) g = g + decay * p[i];
            T m = mean[i] + (g - mean[i]) * rest1, v = square[i] * keep2 + g * g * rest2;
            mean[i] = m, square[i] = v;
            if (GREATEST) {
                T most = greatest[i];
                v = most > v || most != most ? most : v;
                greatest[i] = v;
            }
            p[i] = x - m / (std::sqrt(v) * correction + small) * rate;
        }
    }

    INLINE void step(T *p, const T *g, T *m, T *v, T *most, T correction, T rate, npy_intp n) const {
        if (most) decays ? run<1, 1>(p, g, m, v, most, correction, rate, n) : run<0, 1>(p, g, m, v, most, correction, rate, n);
        else decays ? run<1, 0>(p, g, m, v, most, correction, rate, n) : run<0, 0>(p, g, m, v, most, correction, rate, n);
    }
};

CLONES void adapt(const Moments<float> &a, float *p, const float *g, float *m, float *v, float *most,
                  float correction, float rate, npy_intp n) {
    a.step(p, g, m, v, most, correction, rate, n);
}
CLONES void adapt(const Moments<double> &a, double *p, const double *g, double *m, double *v, double *most,
                  double correction, double rate, npy_intp n) {
    a.step(p, g, m, v, most, correction, rate, n);
}

struct Adam {
    PyObject *params, *grads, *means, *squares, *greatest, *steps;
    double lr, beta1, beta2, eps, decay;
    int decoupled, maximize;

    template <class T>
    bool take(int type) const {
        Arrays p, g, m, v, most;
        std::vector<PyArrayObject *> counts;
        if (!p.take(params, type) || !g.take(grads, type) || !m.take(means, type) || !v.take(squares, type) ||
            !most.take(greatest, type) || !g.fits(p) || !m.fits(p) || !v.fits(p) ||
            (most.sizes.size() && !most.fits(p)) || !take_steps(steps, p.sizes.size(), counts))
            return false;
        std::vector<T> corrections, rates;
        for (PyArrayObject *count : counts) {
            double t = advance(count);
            corrections.push_back(T(std::pow(1 - std::pow(beta2, t), -0.5)));
            rates.push_back(T(lr / (1 - std::pow(beta1, t))));
        }
        bool decays = decay != 0 && !decoupled;
        Moments<T> a{T(maximize ? -1 : 1), T(1 - beta1), T(beta2), T(1 - beta2), T(eps), T(decay),
                     T(decay != 0 && decoupled ? 1 - lr * decay : 1), decays};
        Py_BEGIN_ALLOW_THREADS
        over_all(p.sizes, [&](int i, npy_intp begin, npy_intp end) {
            adapt(a, (T *)p.data[i] + begin, (const T *)g.data[i] + begin, (T *)m.data[i] + begin,
                  (T *)v.data[i] + begin, most.data.size() ? (T *)most.data[i] + begin : nullptr,
                  corrections[i], rates[i], end - begin);
        });
        Py_END_ALLOW_THREADS
        return true;
    }
};

// adam_step(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, lr, beta1, beta2, eps,
// weight_decay, decoupled, maximize): False if nothing has been done.
PyObject *adam_step(PyObject *, PyObject *args) {
    Adam a;
    if (!PyArg_ParseTuple(args, "OOOOOOdddddpp", &a.params, &a.grads, &a.means, &a.squares, &a.greatest, &a.steps,
                          &a.lr, &a.beta1, &a.beta2, &a.eps, &a.decay, &a.decoupled, &a.maximize))
        return nullptr;
    int type = type_of(a.params);
    return PyBool_FromLong(type == NPY_FLOAT    ? a.take<float>(type)
                           : type == NPY_DOUBLE ? a.take<double>(type)
                                                : false);
}

PyMethodDef methods[] = {{"sgd_step", sgd_step, METH_VARARGS, nullptr},
                         {"adam_step", adam_step, METH_VARARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

int register_optimizers(PyObject *module) { return PyModule_AddFunctions(module, methods); }
