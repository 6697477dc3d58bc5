"""Parameters that several distributions share: a location; either probabilities or logits."""

from flambeau.distributions.utils import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)


class SymmetricAroundLoc:
    """Mixin: `loc` is the mean, and the mode."""

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.mean


class ProbsOrLogits:
    """Mixin: `probs` or `logits` is given, the other one is computed when it is asked for."""

    _is_binary = True   # whether logits are log-odds, or unnormalised log-probabilities

    def _take(self, probs, logits, *others):
        """Store the one that is given, broadcast with other parameters, which are returned."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            *others, self.probs = broadcast_all(*others, probs)
        else:
            *others, self.logits = broadcast_all(*others, logits)
        return others

    @property
    def _param(self):
        given = self.__dict__.get("probs")
        return self.logits if given is None else given

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)

    @lazy_property
    def logits(self):
        """Log-odds, or normalised log-probabilities."""
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    @lazy_property
    def probs(self):
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=self._is_binary)

    def _over_batch(self, values, expand):
        """A list of values with dimensions for the batch, to whose shape they `expand`."""
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values

    @property
    def param_shape(self):
        """The shape of `probs` and `logits`."""
        return self._param.size()
