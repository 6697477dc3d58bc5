"""Settings for all tests."""

import hypothesis

# The same examples in every run, and no limit on the time of one: machines differ.
hypothesis.settings.register_profile("flambeau", deadline=None, derandomize=True)
hypothesis.settings.load_profile("flambeau")
