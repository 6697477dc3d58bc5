// Copies that other kernels start with.
#pragma once
#include "common.h"

// A new reference to the array if it is row-major, else to a copy that is, made in tiles.
PyArrayObject *row_major(PyArrayObject *x);
