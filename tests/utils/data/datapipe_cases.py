"""Programs on data pipes, as `name: function(utils.data, torch)`; what each gives is recorded."""

import json
import warnings
from pathlib import Path

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def outcome(function):
    try:
        return function()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:60]}"


def pipes(D):
    return D.datapipes.iter, D.datapipes.iter.IterableWrapper


@case
def chains(D, torch):
    _, wrap = pipes(D)
    p = wrap(range(10))
    yield list(p.map(lambda n: n * n).filter(lambda n: n % 2 == 0).batch(2)), len(p.batch(3))
    yield list(p.batch(3, drop_last=True)), list(p.batch(2).batch(2).unbatch(unbatch_level=2))
    yield list(wrap([[1, [2]], [3]]).unbatch(unbatch_level=-1))
    yield list(p.concat(wrap("ab"))), list(p.zip(wrap("ab"))), list(p.mux(wrap("abc")))
    yield list(p.groupby(lambda n: n % 3)), list(p.groupby(lambda n: n % 3, group_size=2))
    yield list(p.groupby(lambda n: n % 3, keep_key=True, buffer_size=4, group_size=3,
                         drop_remaining=True))
    yield [b.tolist() for b in p.batch(4).collate()]
    yield list(wrap([(1, 2), (3, 4)]).map(lambda n: -n, input_col=1))
    yield list(wrap([(1, 2), (3, 4)]).map(lambda a, b: a + b, input_col=[0, 1], output_col=-1))
    yield list(wrap([{"a": 1, "b": 2}]).map(lambda n: -n, input_col="a", output_col="c"))
    yield list(wrap([(1, 2), (3, 4)]).filter(lambda a: a > 1, input_col=0))
    yield str(p.map(abs)), repr(p), len(p.map(abs)), type(p.batch(2)).__name__
    yield list(D.datapipes.iter.Sampler(p, D.SequentialSampler))


@case
def branches(D, torch):
    _, wrap = pipes(D)
    a, b = wrap(range(4)).fork(2)
    yield list(a), list(b), list(zip(a, b))
    even, odd = wrap(range(6)).demux(2, lambda n: n % 2)
    yield list(even), list(odd)
    a, b = wrap(range(9)).fork(2, buffer_size=3)
    yield outcome(lambda: list(a))
    a, b = wrap(range(9)).demux(2, lambda n: n % 2, buffer_size=2)
    yield outcome(lambda: list(a))
    a, b = wrap([0, None, 1, 5]).demux(2, lambda n: n, drop_none=True)
    yield outcome(lambda: list(a)), outcome(lambda: list(b))
    yield outcome(lambda: wrap([]).fork(0))


@case
def shuffles(D, torch):
    _, wrap = pipes(D)
    torch.manual_seed(5)
    p = wrap(range(12)).shuffle()
    yield list(p), list(p), list(p.set_seed(3)), list(p.set_shuffle(False))
    yield list(wrap(range(12)).shuffle(buffer_size=3).set_seed(1))
    yield list(wrap(range(12)).batch(3).shuffle(unbatch_level=1).set_seed(1))
    q = D.datapipes.map.SequenceWrapper(range(6)).shuffle()
    yield list(q), list(q.set_seed(2)), torch.rand(1).item()


@case
def maps(D, torch):
    wrap = D.datapipes.map.SequenceWrapper
    p = wrap(range(5)).map(lambda n: 2 * n)
    yield p[2], len(p), list(p.batch(2)), len(p.batch(2, drop_last=True)), p.concat(p)[7]
    yield p.zip(wrap("abc"))[1], len(p.zip(wrap("abc"))), outcome(lambda: p.zip(wrap("a"))[3])
    yield outcome(lambda: p.batch(2)[9]), outcome(lambda: p.concat(3)), str(p)


@case
def loaders(D, torch):
    _, wrap = pipes(D)
    torch.manual_seed(1)
    p = wrap(range(10)).shuffle().sharding_filter()
    yield [b.tolist() for b in D.DataLoader(p, batch_size=4, shuffle=True)]
    yield [b.tolist() for b in D.DataLoader(p, batch_size=4, shuffle=False)]
    yield [b.tolist() for b in D.DataLoader(p, batch_size=2, num_workers=2, shuffle=True)]


@case
def errors(D, torch):
    _, wrap = pipes(D)
    p = wrap(range(3))
    first = iter(p)
    next(first)
    list(p)
    yield outcome(lambda: next(first)), type(outcome(lambda: p.foo)).__name__
    yield outcome(lambda: p.batch(0)), outcome(lambda: list(p.filter(lambda n: n)))
    yield outcome(lambda: list(p.unbatch(unbatch_level=1)))
    yield outcome(lambda: len(p.filter(bool))), outcome(lambda: p.zip(3))
    yield outcome(lambda: p.concat(3))
    yield outcome(lambda: p.map(abs, output_col=1)), outcome(lambda: p.shuffle(buffer_size=0))
    yield outcome(lambda: D.IterDataPipe.register_datapipe_as_function("map", int))
    yield str(D.DataChunk([1, 2])), D.DataChunk("ab").as_str()


@case
def determinism(D, torch):
    @D.non_deterministic
    class Loose(D.IterDataPipe):
        def __iter__(self):
            return iter([1])

    yield list(Loose())
    with D.guaranteed_datapipes_determinism():
        yield outcome(Loose)


def run(name, torch):
    import importlib
    root = torch.__name__
    for module in ("iter", "map"):
        importlib.import_module(f"{root}.utils.data.datapipes.{module}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = [repr(value) for value in CASES[name](torch.utils.data, torch)]
    return found + [str(w.message) for w in caught
                    if w.category is UserWarning and "supported by pickle" not in str(w.message)]


def check_like_pytorch(name, torch):
    """Assert that the program gives what is recorded of PyTorch."""
    file = Path(__file__).resolve().parents[2] / "data" / "datapipes.json"
    assert run(name, torch) == json.loads(file.read_text())[name]
