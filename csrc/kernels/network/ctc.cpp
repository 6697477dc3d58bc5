// Connectionist temporal classification: flambeau/kernels/network/ctc.py.
#include "kernels/network/module.h"
#include "kernels/pointwise/vecmath.h"

namespace network {

namespace {

// Log-probabilities x (t, n, c) of labels, and target labels (n, s), which make 2 s + 1 states:
// blanks before, between and after them.
template <class T>
struct Alignments {
    npy_intp steps, n, labels, targets, states, blank;
    const T *x;
    const int64_t *target;
    std::vector<npy_intp> inputs, lengths;

    bool read(const Array &log_probs, const Array &wanted, PyObject *const *rest) {
        if (log_probs.ndim() != 3 || wanted.ndim() != 2 || !log_probs.size() ||
            !take_ints(rest[0], inputs) || !take_ints(rest[1], lengths) || !take_int(rest[2], blank))
            return false;
        steps = log_probs.dim(0), n = log_probs.dim(1), labels = log_probs.dim(2);
        targets = wanted.dim(1), states = 2 * targets + 1;
        x = log_probs.data<T>();
        target = wanted.data<int64_t>();
        auto within = [&](npy_intp label) { return label >= 0 && label < labels; };
        auto counts = [&](const std::vector<npy_intp> &values, npy_intp most) {
            return npy_intp(values.size()) == n &&
                   std::all_of(values.begin(), values.end(), [&](npy_intp v) {
                return v >= 0 && v <= most;
            });
        };
        return wanted.dim(0) == n && within(blank) && counts(inputs, steps) &&
               counts(lengths, targets) && std::all_of(target, target + n * targets, within);
    }

    // The label of each state of a sample; 0 in `skips` where the state two before leads to it.
    void describe(npy_intp sample, npy_intp *label, T *skips) const {
        const T never = -std::numeric_limits<T>::infinity();
        for (npy_intp s = 0; s < states; s++) {
            label[s] = s % 2 ? npy_intp(target[sample * targets + s / 2]) : blank;
            skips[s] = s > 1 && label[s] != blank && label[s] != label[s - 2] ? T(0) : never;
        }
    }
    bool ends(npy_intp sample, npy_intp state) const {
        npy_intp last = 2 * lengths[sample];
        return state == last || state == last - 1;
    }
};

template <class T>
INLINE T log_sum(T a, T b, T c) {
    T largest = b > a ? b : a;
    largest = c > largest ? c : largest;
    T shift = std::fabs(largest) == std::numeric_limits<T>::infinity() ? T(0) : largest;
    return vec::log(vec::exp(a - shift) + vec::exp(b - shift) + vec::exp(c - shift)) + shift;
}

// to[s] = emitted[s] + log of the sum over `from` s, s + near and s + 2 near, the last one as skips
// allow that start at the farther end.
template <class T>
CLONES void advance(npy_intp states, const T *from, npy_intp near, const T *skips, const T *emitted,
                    T *to) {
    INDEPENDENT
    for (npy_intp s = 0; s < states; s++)
        to[s] = log_sum(from[s], from[s + near], from[s + 2 * near] + skips[s]) + emitted[s];
}

// exp(alpha + beta - emitted + loss), the probability of each state; 0 where that is not finite.
template <class T>
CLONES void occupancy(npy_intp states, const T *alpha, const T *beta, const T *emitted, T loss,
                      T *to) {
    INDEPENDENT
    for (npy_intp s = 0; s < states; s++) {
        T both = vec::exp(alpha[s] + beta[s] - emitted[s] + loss);
        to[s] = std::fabs(both) <= std::numeric_limits<T>::max() ? both : T(0);
    }
}

template <class T>
CLONES void exponentials(npy_intp n, const T *x, T *to) {
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) to[i] = vec::exp(x[i]);
}

template <class T>
T forward(const Alignments<T> &a, npy_intp sample, T *alphas) {
    const T never = -std::numeric_limits<T>::infinity();
    npy_intp stride = a.n * a.states;
    std::vector<npy_intp> label(a.states);
    // two states that are never reached stand before the first one
    std::vector<T> memory(4 * a.states + 2, never);
    T *skips = memory.data(), *emitted = skips + a.states, *from = emitted + a.states + 2,
      *to = from + a.states;
    a.describe(sample, label.data(), skips);
    for (npy_intp t = 0; t < a.steps; t++) {
        const T *x = a.x + (t * a.n + sample) * a.labels;
        // `emitted` ends where the two states begin that `from` looks back to
        for (npy_intp s = 0; s < a.states; s++) emitted[s] = x[label[s]];
        T *row = alphas + t * stride + sample * a.states;
        if (t == 0) {
            std::fill(row, row + a.states, never);
            std::copy(emitted, emitted + std::min<npy_intp>(2, a.states), row);
        } else {
            advance(a.states, from, -1, skips, emitted, to);
            std::copy(to, to + a.states, row);
        }
        std::copy(row, row + a.states, from);
    }
    npy_intp length = a.lengths[sample], inputs = a.inputs[sample];
    if (inputs == 0) return length == 0 ? T(0) : -never;
    const T *last = alphas + (inputs - 1) * stride + sample * a.states;
    return -log_sum(last[2 * length], length ? last[2 * length - 1] : never, never);
}

template <class T>
PyObject *ctc_loss_(PyObject *const *args) {
    Array x, targets;
    Alignments<T> a;
    if (!take<T>(args[0], x) || !take<int64_t>(args[1], targets) || !a.read(x, targets, args + 2))
        return declined();
    int type = TypeNum<T>::value;
    Array losses = Array::empty({a.n}, type), alphas = Array::empty({a.steps, a.n, a.states}, type);
    if (!losses || !alphas) return nullptr;
    {
        Unlocked unlocked;
        parallel_for(
            a.n, std::max<npy_intp>(1, PARALLEL_FROM / 16 / (a.steps * a.states)),
            [&](int64_t first, int64_t last) {
                for (npy_intp i = first; i < last; i++)
                    losses.data<T>()[i] = forward(a, i, alphas.data<T>());
            },
            1);
    }
    return results(losses, alphas);
}
NETWORK_FLOATS(ctc_loss, 0)

template <class T>
void backward(const Alignments<T> &a, npy_intp sample, T g, T loss, const T *alphas, T *result) {
    const T never = -std::numeric_limits<T>::infinity();
    npy_intp inputs = a.inputs[sample], stride = a.n * a.states;
    std::vector<npy_intp> label(a.states);
    // two states that are never reached stand after the last one
    std::vector<T> memory(5 * a.states + 4, never);
    T *skips = memory.data(), *emitted = skips + a.states + 2, *from = emitted + a.states,
      *to = from + a.states + 2, *share = to + a.states;
    a.describe(sample, label.data(), skips);
    bool hopeless = std::fabs(loss) == -never;
    for (npy_intp t = a.steps - 1; t >= 0; t--) {
        const T *x = a.x + (t * a.n + sample) * a.labels;
        T *row = result + (t * a.n + sample) * a.labels;
        if (hopeless || t >= inputs) {
            T value = hopeless && g != 0 ? std::numeric_limits<T>::quiet_NaN() : T(0);
            std::fill(row, row + a.labels, value);
            continue;
        }
        for (npy_intp s = 0; s < a.states; s++) emitted[s] = x[label[s]];
        if (t == inputs - 1) {
            for (npy_intp s = 0; s < a.states; s++) to[s] = a.ends(sample, s) ? emitted[s] : never;
        } else {
            advance(a.states, from, 1, skips + 2, emitted, to);
        }
        std::copy(to, to + a.states, from);
        occupancy(a.states, alphas + t * stride + sample * a.states, from, emitted, loss, share);
        exponentials(a.labels, x, row);
        for (npy_intp s = 0; s < a.states; s++) row[label[s]] -= share[s];
        for (npy_intp k = 0; k < a.labels; k++) row[k] *= g;
    }
}

template <class T>
PyObject *ctc_loss_backward_(PyObject *const *args) {
    Array g, x, losses, alphas, targets;
    Alignments<T> a;
    if (!take<T>(args[0], g) || !take<T>(args[1], x) || !take<T>(args[2], losses) ||
        !take<T>(args[3], alphas) || !take<int64_t>(args[4], targets) ||
        !a.read(x, targets, args + 5) || g.size() != a.n || losses.size() != a.n ||
        alphas.size() != a.steps * a.n * a.states)
        return declined();
    Array result = Array::empty(x.dims(), TypeNum<T>::value);
    if (!result) return nullptr;
    Unlocked unlocked;
    parallel_for(
        a.n, std::max<npy_intp>(1, PARALLEL_FROM / 16 / (a.steps * a.states)),
        [&](int64_t first, int64_t last) {
            for (npy_intp i = first; i < last; i++)
                backward(a, i, g.data<T>()[i], losses.data<T>()[i], alphas.data<T>(),
                         result.data<T>());
        },
        1);
    return result.release();
}
NETWORK_FLOATS(ctc_loss_backward, 1)

PyMethodDef methods[] = {NETWORK_METHOD(ctc_loss, 5),
                         NETWORK_METHOD(ctc_loss_backward, 8),
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

}  // namespace network

int register_network_ctc(PyObject *module) {
    return PyModule_AddFunctions(module, network::methods);
}
