"""Layers of networks as functions: activations, norms, embeddings, attention, recurrence."""
