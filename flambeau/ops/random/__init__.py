"""Random numbers: fills, draws, and samples whose parameters are tensors."""
