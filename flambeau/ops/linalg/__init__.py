"""Products, factorisations, equations and functions of matrices."""
