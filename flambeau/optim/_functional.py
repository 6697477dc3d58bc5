"""One step of each optimiser on lists of tensors, whose state the caller keeps."""

from flambeau.optim.adadelta import adadelta
from flambeau.optim.adagrad import adagrad
from flambeau.optim.adam import adam, adamw
from flambeau.optim.adamax import adamax
from flambeau.optim.asgd import asgd
from flambeau.optim.nadam import nadam
from flambeau.optim.radam import radam
from flambeau.optim.rmsprop import rmsprop
from flambeau.optim.rprop import rprop
from flambeau.optim.sgd import sgd
from flambeau.optim.sparse_adam import sparse_adam

__all__ = ["adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop",
           "rprop", "sgd", "sparse_adam"]
