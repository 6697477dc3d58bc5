"""Making tensors: of nothing, of data, of numbers at equal steps, of windows."""
