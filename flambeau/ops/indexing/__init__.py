"""Reading and writing by index: `x[…]`, gather and scatter, slices and masks."""
