"""Graph mode: a traced network is watched and lowered to quantised ops as a whole."""
