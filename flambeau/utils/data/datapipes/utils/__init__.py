"""Helpers of the pipes."""
