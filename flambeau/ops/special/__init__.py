"""Special functions: gamma, Bessel, error functions, orthogonal polynomials."""
