"""Processes of torchelastic: what they do when they fail."""
