// What a Fourier transform of length n needs besides its data: factors and roots of unity.
#pragma once
#include "kernels/network/network.h"

namespace network {

// exp(-2 pi i k / n), from an angle below pi / 4.
inline void root_of_unity(int64_t k, int64_t n, double &re, double &im) {
    int64_t eighths = 8 * (k % n), octant = eighths / n, rest = eighths % n;
    if (octant & 1) rest = n - rest;
    double angle = 0.78539816339744830962 * double(rest) / double(n);
    double c = std::cos(angle), s = octant & 1 ? -std::sin(angle) : std::sin(angle);
    switch ((octant + 1) / 2 & 3) {
        case 0: re = c, im = -s; break;
        case 1: re = -s, im = -c; break;
        case 2: re = -c, im = s; break;
        default: re = s, im = c; break;
    }
}

// One pass takes sums over `radix` elements that are m * s apart; see `pass` in the loops.
struct Pass {
    int radix;
    int64_t m, s, at;  // at: where its roots begin
};

// The passes of one length; `roots` are pairs (re, im), radix - 1 of them for each of m places.
template <class T>
struct Passes {
    int64_t n = 1;
    std::vector<Pass> passes;
    std::vector<T> roots;

    Passes() = default;
    explicit Passes(int64_t length) : n(length) {
        int64_t rest = n, s = 1;
        while (rest > 1) {
            int radix = factor(rest);
            int64_t m = rest / radix;
            passes.push_back({radix, m, s, int64_t(roots.size())});
            for (int64_t p = 0; p < m; p++)
                for (int k = 1; k < radix; k++) add(p * k, rest);
            if (radix == 7 || radix > 8)
                for (int k = 0; k < radix; k++) add(k, radix);
            rest = m;
            s *= radix;
        }
    }

    // The radix of the next pass; 0 where a prime factor has no loop.
    static int factor(int64_t n) {
        if (n % 8 == 0 && n != 16) return 8;
        for (int radix : {4, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31})
            if (n % radix == 0) return radix;
        return 0;
    }

 private:
    void add(int64_t k, int64_t n_) {
        double re, im;
        root_of_unity(k, n_, re, im);
        roots.push_back(T(re));
        roots.push_back(T(im));
    }
};

constexpr int LARGEST_RADIX = 31;

// How rows of length n are transformed: whole, with one row in each lane; or, where n = first *
// second is long, each row as a matrix of these extents, by columns and then by rows.
template <class T>
struct Plan {
    int64_t n, first, second = 1, padded = 0;
    Passes<T> a, b;
    std::vector<T> turns_re, turns_im;  // (first, padded): between the two steps
    std::vector<T> half_re, half_im;    // exp(-pi i k / n): between real and complex

    Plan(int64_t length, bool split) : n(length), first(length) {
        if (split && n >= LONG)
            for (int64_t d = 16; d * d <= n; d++)
                if (n % d == 0) second = d;
        first = n / second;
        a = Passes<T>(first);
        b = Passes<T>(second);
        if (second > 1) {
            padded = (second + 15) / 16 * 16;
            turns_re.resize(first * padded);
            turns_im.resize(first * padded);
            for (int64_t k = 0; k < first; k++)
                for (int64_t j = 0; j < second; j++)
                    set(k * j, n, turns_re[k * padded + j], turns_im[k * padded + j]);
        }
        int64_t count = n / 2 + 17;
        half_re.resize(count);
        half_im.resize(count);
        for (int64_t k = 0; k < count; k++) set(k, 2 * n, half_re[k], half_im[k]);
    }

    int64_t elements() const { return int64_t(a.roots.size() + b.roots.size() + 2 * turns_re.size()) + n; }

    // Whether every prime factor has a loop.
    static bool fits(int64_t n) {
        while (n > 1) {
            int radix = Passes<T>::factor(n);
            if (!radix) return false;
            n /= radix;
        }
        return n == 1;
    }

    static constexpr int64_t LONG = 512;

 private:
    static void set(int64_t k, int64_t n_, T &re, T &im) {
        double x, y;
        root_of_unity(k, n_, x, y);
        re = T(x);
        im = T(y);
    }
};

}  // namespace network
