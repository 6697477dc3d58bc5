"""What the tests of checkpoints share."""


def gradient(function, x):
    x = x.detach().clone().requires_grad_()
    function(x).sum().backward()
    return x.grad


class Counted:
    """A function, and how often it has run."""

    def __init__(self, *functions):
        self.functions, self.runs = functions, 0

    def __call__(self, *args, **kwargs):
        function = self.functions[min(self.runs, len(self.functions) - 1)]
        self.runs += 1
        return function(*args, **kwargs)
