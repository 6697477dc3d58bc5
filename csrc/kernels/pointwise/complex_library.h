// Functions of complex numbers that the C library has.
#pragma once
#include "kernels/pointwise/complex.h"

template <class T>
INLINE std::complex<T> to_library(Complex<T> a) { return {a.re, a.im}; }
template <class T>
INLINE Complex<T> from_library(std::complex<T> a) { return {a.real(), a.imag()}; }
