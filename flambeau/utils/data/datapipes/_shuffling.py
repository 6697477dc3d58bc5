"""What pipes with a random order share: a seed for each iteration, drawn where none is given."""

import random

import flambeau
from flambeau.utils.data.datapipes.datapipe import IterDataPipe


class ShufflingIterDataPipe(IterDataPipe):
    """A pipe that may give its elements in random order, by the numbers of `self._rng`."""

    def __init__(self):
        self._enabled, self._seed, self._rng = True, None, random.Random()

    def set_shuffle(self, shuffle=True):
        """Turn the random order on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed):
        """The seed of the next iteration alone."""
        self._seed = seed
        return self

    def reset(self):
        if self._enabled:
            if self._seed is None:
                self._seed = int(flambeau.empty((), dtype=flambeau.int64).random_().item())
            self._rng.seed(self._seed)
            self._seed = None
