"""Models that train by themselves, and are averaged from time to time."""
