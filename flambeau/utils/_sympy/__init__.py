"""Numbers and ranges of sizes. Sizes are plain integers here, so none of it needs sympy."""
