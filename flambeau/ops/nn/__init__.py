"""The layers of networks as functions: activations, norms, convolutions, pools, attention."""
