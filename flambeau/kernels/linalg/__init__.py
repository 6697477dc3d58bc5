"""Kernels of linear algebra, on BLAS and LAPACK; Fourier transforms."""
