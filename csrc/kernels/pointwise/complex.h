// Complex numbers for loops: plain formulas that the compiler can vectorise.
#pragma once
#include <complex>

#include "common.h"

template <class T>
struct IsComplex {
    static constexpr bool value = false;
};
template <class T>
struct IsComplex<Complex<T>> {
    static constexpr bool value = true;
};
template <class T>
constexpr bool is_complex = IsComplex<T>::value;

template <class T>
INLINE Complex<T> operator+(Complex<T> a, Complex<T> b) { return {a.re + b.re, a.im + b.im}; }
template <class T>
INLINE Complex<T> operator-(Complex<T> a, Complex<T> b) { return {a.re - b.re, a.im - b.im}; }
template <class T>
INLINE Complex<T> operator-(Complex<T> a) { return {-a.re, -a.im}; }
template <class T>
INLINE Complex<T> operator*(Complex<T> a, Complex<T> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// Smith's division: the parts of the divisor are scaled by the larger one.
template <class T>
INLINE Complex<T> operator/(Complex<T> a, Complex<T> b) {
    T x = std::fabs(b.re), y = std::fabs(b.im);
    if (x == 0 && y == 0) return {a.re / x, a.im / y};
    bool wide = x >= y;
    T big = wide ? b.re : b.im, small = wide ? b.im : b.re;
    T ratio = small / big, scale = T(1) / (big + small * ratio);
    return wide ? Complex<T>{(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale}
                : Complex<T>{(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}
template <class T>
INLINE bool operator==(Complex<T> a, Complex<T> b) { return (a.re == b.re) & (a.im == b.im); }
template <class T>
INLINE bool operator!=(Complex<T> a, Complex<T> b) { return (a.re != b.re) | (a.im != b.im); }

template <class T>
INLINE T conjugate(T a) { return a; }
template <class T>
INLINE Complex<T> conjugate(Complex<T> a) { return {a.re, -a.im}; }
template <class T>
INLINE T real_part(T a) { return a; }
template <class T>
INLINE T real_part(Complex<T> a) { return a.re; }
template <class T>
INLINE T imaginary_part(T) { return T(0); }
template <class T>
INLINE T imaginary_part(Complex<T> a) { return a.im; }

template <class T>
struct One {
    static INLINE T value() { return T(1); }
};
template <class T>
struct One<Complex<T>> {
    static INLINE Complex<T> value() { return {T(1), T(0)}; }
};
template <class T>
INLINE T one() { return One<T>::value(); }

template <class T>
INLINE bool is_true(T a) { return a != T(0); }
template <class T>
INLINE bool is_true(Complex<T> a) { return (a.re != 0) | (a.im != 0); }
