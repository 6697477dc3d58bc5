"""Activation checkpointing as a wrapper of modules."""
