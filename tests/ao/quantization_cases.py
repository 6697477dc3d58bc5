"""Small programs that quantise networks, for PyTorch and for flambeau alike.

Each takes the package and gives a dictionary of texts, lists and tensors. `record_quantization.py`
writes down what PyTorch gives.
"""
import copy
import importlib
import re
import types

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def plain(value):
    """Tensors as nested lists; floats with six digits."""
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return float(f"{value:.6g}") if isinstance(value, float) else value


def parts(torch):
    """The modules that programs import, whatever the package is called."""
    root = torch.nn.Module.__module__.partition(".")[0]
    found = types.SimpleNamespace(torch=torch, nn=torch.nn)
    for name, path in (("Q", "quantization"), ("nni", "nn.intrinsic"), ("nnq", "nn.quantized"),
                       ("nnqd", "nn.quantized.dynamic"), ("nniqat", "nn.intrinsic.qat"),
                       ("nnqat", "nn.qat"), ("nniq", "nn.intrinsic.quantized"),
                       ("nnqr", "nn.quantized.reference"), ("nnqa", "nn.quantizable"),
                       ("qF", "nn.quantized.functional"), ("fx", "quantization.quantize_fx")):
        setattr(found, name, importlib.import_module(f"{root}.ao.{path}"))
    return found


def shape_of(model):
    """The printed form without numbers that training found."""
    return re.sub(r"tensor\(.*?\)|-?\d+\.\d+(e-\d+)?", "#", repr(model), flags=re.S)


def observed(p, module, x):
    """A module between stubs, observed, converted and run."""
    model = p.nn.Sequential(p.Q.QuantStub(), module, p.Q.DeQuantStub()).eval()
    model.qconfig = p.Q.get_default_qconfig("x86")
    prepared = p.Q.prepare(model)
    prepared(x), prepared(2 * x)
    quantized = p.Q.convert(prepared)
    return {"repr": repr(quantized[1]), "keys": list(quantized.state_dict()),
            "integers": quantized[1](quantized[0](x)).int_repr(), "y": quantized(x)}


LAYERS = {
    "linear": (lambda nn: nn.Linear(8, 5), (6, 8)),
    "linear_no_bias": (lambda nn: nn.Linear(8, 5, bias=False), (3, 2, 8)),
    "conv1d": (lambda nn: nn.Conv1d(4, 6, 3, padding=1, stride=2, groups=2), (2, 4, 7)),
    "conv2d": (lambda nn: nn.Conv2d(4, 6, 3, padding=1, stride=2, groups=2), (1, 4, 5, 5)),
    "conv2d_reflect": (lambda nn: nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect",
                                            bias=False), (1, 2, 4, 4)),
    "conv3d": (lambda nn: nn.Conv3d(2, 3, 2, dilation=2), (1, 2, 4, 4, 4)),
    "batch_norm": (lambda nn: nn.BatchNorm2d(4), (2, 4, 3, 3)),
    "layer_norm": (lambda nn: nn.LayerNorm(5), (2, 4, 5)),
    "group_norm": (lambda nn: nn.GroupNorm(2, 4), (2, 4, 3, 3)),
    "instance_norm": (lambda nn: nn.InstanceNorm2d(4), (2, 4, 3, 3)),
    "elu": (lambda nn: nn.ELU(0.7), (4, 5)), "hardswish": (lambda nn: nn.Hardswish(), (4, 5)),
    "leaky_relu": (lambda nn: nn.LeakyReLU(0.2), (4, 5)), "relu6": (lambda nn: nn.ReLU6(), (4, 5)),
    "relu": (lambda nn: nn.ReLU(), (4, 5)), "dropout": (lambda nn: nn.Dropout(), (4, 5)),
    "max_pool": (lambda nn: nn.MaxPool2d(2), (1, 2, 4, 4)),
    "average_pool": (lambda nn: nn.AvgPool2d(2), (1, 2, 4, 4))}


def _layer(name):
    build, sizes = LAYERS[name]

    def run(torch):
        p = parts(torch)
        module = build(p.nn)
        return observed(p, module, torch.randn(*sizes))
    CASES[f"layer_{name}"] = run


for _name in LAYERS:
    _layer(_name)


@case
def transposed(torch):
    p, results = parts(torch), {}
    for n in (1, 2):
        module = getattr(p.nn, f"ConvTranspose{n}d")(2, 3, 3, padding=1, stride=2, output_padding=1)
        module.qconfig = p.Q.default_qconfig
        results[str(n)] = observed(p, module, torch.randn(1, 2, *(3,) * n))
    return results


ROWS = {"conv_bn_relu": (lambda nn: [nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU()],
                         (2, 2, 5, 5)),
        "conv_bn": (lambda nn: [nn.Conv1d(2, 3, 3, bias=False), nn.BatchNorm1d(3)], (2, 2, 5)),
        "conv_relu": (lambda nn: [nn.Conv2d(2, 3, 3), nn.ReLU()], (2, 2, 5, 5)),
        "linear_relu": (lambda nn: [nn.Linear(3, 4), nn.ReLU()], (5, 3)),
        "linear_bn": (lambda nn: [nn.Linear(3, 4), nn.BatchNorm1d(4)], (9, 3)),
        "bn_relu": (lambda nn: [nn.BatchNorm2d(4), nn.ReLU()], (2, 4, 3, 3))}


def _row(name):
    build, sizes = ROWS[name]

    def run(torch):
        p = parts(torch)
        model, x = p.nn.Sequential(p.Q.QuantStub(), p.nn.Sequential(*build(p.nn)),
                                   p.Q.DeQuantStub()), torch.randn(*sizes)
        model(x)
        names = [f"1.{i}" for i in range(len(model[1]))]
        fused = p.Q.fuse_modules(model.eval(), names)
        fused.qconfig = p.Q.get_default_qconfig()
        results = {"fused": repr(fused), "float": fused(x)}
        quantized = p.Q.quantize(fused, lambda m, v: m(v), [x])
        results |= {"y": quantized(x), "keys": list(quantized.state_dict())}
        learner = p.Q.fuse_modules_qat(model.train(), names)
        learner.qconfig = p.Q.get_default_qat_qconfig()
        learner = p.Q.prepare_qat(learner)
        results |= {"learner": shape_of(learner), "learner_keys": list(learner.state_dict()),
                    "losses": []}
        optimizer = torch.optim.SGD(learner.parameters(), 0.05)
        for _ in range(3):
            optimizer.zero_grad()
            loss = (learner(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            results["losses"].append(loss.item())
        learner.apply(p.nniqat.freeze_bn_stats).apply(p.Q.disable_observer)
        results["learned"] = learner.eval()(x)
        converted = p.Q.convert(learner)
        return results | {"converted": shape_of(converted), "converted_y": converted(x)}
    CASES[f"row_{name}"] = run


for _name in ROWS:
    _row(_name)


@case
def small_cnn(torch):
    p = parts(torch)
    nn = p.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = p.Q.QuantStub(), p.Q.DeQuantStub()
            self.conv1, self.bn1, self.relu1 = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU()
            self.conv2 = nn.Conv2d(4, 4, 3, padding=1)
            self.join, self.pool, self.fc = p.nnq.FloatFunctional(), nn.MaxPool2d(2), \
                nn.Linear(36, 10)

        def forward(self, x):
            x = self.relu1(self.bn1(self.conv1(self.quant(x))))
            x = self.pool(self.join.add_relu(self.conv2(x), x))
            return self.dequant(self.fc(torch.flatten(x, 1)))

    net, x = Net(), torch.randn(4, 1, 8, 8)
    net(x)
    net = p.Q.fuse_modules(net.eval(), [["conv1", "bn1", "relu1"]])
    net.qconfig = p.Q.get_default_qconfig()
    quantized = p.Q.quantize(net, lambda m, v: (m(v), m(1.5 * v)), [x])
    return {"repr": shape_of(quantized), "keys": list(quantized.state_dict()), "y": quantized(x)}


@case
def dynamic_mlp(torch):
    p = parts(torch)
    model, x = p.nn.Sequential(p.nn.Linear(8, 16), p.nn.ReLU(), p.nn.Linear(16, 3)), \
        torch.randn(4, 8)
    results = {}
    for dtype in ("qint8", "float16"):
        quantized = p.Q.quantize_dynamic(model, {p.nn.Linear}, dtype=getattr(torch, dtype))
        results[dtype] = {"repr": repr(quantized), "y": quantized(x),
                          "keys": list(quantized.state_dict())}
    quantized = p.Q.quantize_dynamic(model, {"0": p.Q.per_channel_dynamic_qconfig})
    return results | {"channels": quantized(x)}


@case
def dynamic_recurrent(torch):
    p, results = parts(torch), {}
    for kind in ("LSTM", "GRU"):
        for options in ({}, {"num_layers": 2, "bidirectional": True, "batch_first": True}):
            torch.manual_seed(1)                # converting may draw numbers, to overwrite them
            model, x = p.nn.Sequential(getattr(p.nn, kind)(4, 3, **options)), torch.randn(3, 3, 4)
            quantized = p.Q.quantize_dynamic(model)
            y, state = quantized(x)
            packed = p.nn.utils.rnn.pack_padded_sequence(x, torch.tensor([3, 2, 1]),
                                                         batch_first=bool(options))
            results[f"{kind}{len(options)}"] = {
                "repr": repr(quantized), "y": y, "state": list(state), "keys":
                list(quantized.state_dict()), "packed": quantized(packed)[0].data}
    return results


@case
def dynamic_cells(torch):
    p, results = parts(torch), {}
    for kind in ("LSTMCell", "GRUCell", "RNNCell"):
        model, x = p.nn.Sequential(getattr(p.nn, kind)(4, 3)), torch.randn(2, 4)
        state = torch.get_rng_state()
        quantized = p.Q.quantize_dynamic(model)
        torch.set_rng_state(state)
        y = quantized(x)
        results[kind] = {"repr": repr(quantized), "y": list(y) if isinstance(y, tuple) else y,
                         "keys": list(quantized.state_dict())}
    return results


@case
def embeddings(torch):
    p = parts(torch)
    table, bags = p.nn.Embedding(10, 4), p.nn.EmbeddingBag(10, 4, mode="sum")
    indices, offsets = torch.tensor([1, 5, 9, 9, 0]), torch.tensor([0, 2])
    model = p.nn.ModuleList([table, bags])
    model.qconfig = p.Q.float_qparams_weight_only_qconfig
    quantized = p.Q.convert(p.Q.prepare(model))
    learner = p.nn.Sequential(p.nn.Embedding(6, 4))
    learner.qconfig = p.Q.default_embedding_qat_qconfig
    learner = p.Q.prepare_qat(learner.train(), mapping=p.Q.get_embedding_qat_module_mappings())
    y = learner(indices[:2])
    y.sum().backward()
    return {"repr": repr(quantized), "keys": list(quantized.state_dict()),
            "rows": quantized[0](indices), "bags": quantized[1](indices, offsets),
            "learner": shape_of(learner), "learned": y, "grad": learner[0].weight.grad}


@case
def static_lstm_and_attention(torch):
    p, results = parts(torch), {}

    class Model(p.nn.Module):
        def __init__(self, inner, calls):
            super().__init__()
            self.quant, self.inner, self.dequant = p.Q.QuantStub(), inner, p.Q.DeQuantStub()
            self.calls = calls

        def forward(self, x):
            x = self.quant(x)
            return self.dequant(self.inner(*[x] * self.calls)[0])

    for name, kind, sizes, calls in (("lstm", p.nn.LSTM, (4, 3), 1),
                                     ("attention", p.nn.MultiheadAttention, (4, 2), 3)):
        torch.manual_seed(1)
        model, x = Model(kind(*sizes), calls).eval(), torch.randn(3, 2, 4)
        model.qconfig = p.Q.get_default_qconfig("qnnpack")
        prepared = p.Q.prepare(model)
        float_y = prepared(x)
        quantized = p.Q.convert(prepared)
        results[name] = {"float": float_y, "repr": shape_of(quantized), "y": quantized(x)}
    return results


def code_of(model):
    """The code without what PyTorch's own functions add to it."""
    return model.code.replace("torch._C._nn.", "torch.nn.functional.").replace(
        ", inplace = False", "").strip()


def graph_mode(p, model, mapping, x):
    """A traced model: observed, converted, and as its reference; run and printed."""
    prepared = p.fx.prepare_fx(copy.deepcopy(model).eval(), mapping, (x,))
    prepared(x), prepared(2 * x)
    reference = p.fx.convert_to_reference_fx(copy.deepcopy(prepared))
    result = {"prepared": code_of(prepared), "reference": code_of(reference)}
    quantized = p.fx.convert_fx(prepared)
    return result | {"code": code_of(quantized), "keys": list(quantized.state_dict()),
                     "y": quantized(x), "children": [
                         [name, type(m).__name__] for name, m in quantized.named_children()]}


@case
def graph_of_modules(torch):
    p = parts(torch)
    nn = p.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn, self.relu = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU()
            self.block = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.Hardswish())
            self.pool, self.fc, self.sigmoid = nn.MaxPool2d(2), nn.Linear(36, 5), nn.Sigmoid()

        def forward(self, x):
            x = self.relu(self.bn(self.conv1(x)))
            x = torch.relu(self.block(x) + x)
            x = self.sigmoid(self.fc(torch.flatten(self.pool(x), 1)))
            return x * 2.0

    net, x = Net(), torch.randn(2, 1, 8, 8)
    net(x)
    results = graph_mode(p, net, p.Q.get_default_qconfig_mapping(), x)
    results["fused"] = shape_of(p.fx.fuse_fx(copy.deepcopy(net).eval()))
    some = p.Q.QConfigMapping().set_global(p.Q.get_default_qconfig()).set_module_name(
        "block", None).set_object_type(torch.relu, None)
    results["some"] = graph_mode(p, net, some, x)
    learner = p.fx.prepare_qat_fx(net.train(), p.Q.get_default_qat_qconfig_mapping(), (x,))
    optimizer = torch.optim.SGD(learner.parameters(), 0.01)
    for _ in range(2):
        optimizer.zero_grad()
        (learner(x) ** 2).mean().backward()
        optimizer.step()
    converted = p.fx.convert_fx(learner.eval())
    return results | {"learner": code_of(learner), "learned": learner(x),
                      "converted": code_of(converted), "converted_y": converted(x)}


@case
def graph_of_functions(torch):
    p = parts(torch)
    F = p.nn.functional

    class Net(p.nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b = p.nn.Parameter(torch.randn(4, 3)), p.nn.Parameter(torch.randn(4))
            self.kernel = p.nn.Parameter(torch.randn(2, 1, 2, 2))
            self.norm, self.last = p.nn.LayerNorm(4), p.nn.Linear(4, 4)

        def forward(self, x):
            y = F.relu(F.linear(x, self.w, self.b))
            z = torch.cat([y, y], 1).reshape(-1, 4)
            z = self.norm(z) * y.mean()
            z = F.hardswish(self.last(z)).transpose(0, 1)
            return z, F.conv2d(z.reshape(1, 1, 4, 4), self.kernel, None, (2, 2), (0, 0),
                               (1, 1), 1).sum()

    return graph_mode(p, Net(), p.Q.get_default_qconfig_mapping(), torch.randn(2, 3))


@case
def graph_with_dynamic_ranges(torch):
    p = parts(torch)
    model = p.nn.Sequential(p.nn.Linear(3, 4), p.nn.ReLU(), p.nn.Linear(4, 2))
    mapping, x = p.Q.QConfigMapping().set_global(p.Q.default_dynamic_qconfig), torch.randn(2, 3)
    results = graph_mode(p, model, mapping, x)
    return {name: results[name] for name in ("prepared", "code", "keys", "y", "children")}


@case
def reference(torch):
    p = parts(torch)
    model = p.nn.Sequential(p.nn.Conv2d(2, 3, 3), p.nn.Flatten(), p.nn.Linear(12, 4)).eval()
    model.qconfig = p.Q.get_default_qconfig()
    prepared, x = p.Q.prepare(model), torch.randn(2, 2, 4, 4)
    prepared(x)
    quantized = p.Q.convert(prepared, is_reference=True)
    return {"repr": repr(quantized), "keys": list(quantized.state_dict()), "y": quantized(x)}


@case
def functions(torch):
    p = parts(torch)
    x = torch.quantize_per_tensor(torch.randn(1, 4, 4, 4), 0.05, 60, torch.quint8)
    w = torch.quantize_per_tensor(torch.randn(3, 4, 3, 3), 0.01, 0, torch.qint8)
    y, q = torch.quantize_per_tensor(torch.randn(1, 4, 4, 4), 0.07, 100, torch.quint8), \
        torch.ops.quantized
    return {name: value.int_repr() for name, value in {
        "conv2d": p.qF.conv2d(x, w, torch.randn(3), padding=1, scale=0.1, zero_point=50),
        "max_pool2d": p.qF.max_pool2d(x, 2), "avg_pool2d": p.qF.avg_pool2d(x, 2),
        "interpolate": p.qF.interpolate(x, scale_factor=2), "hardtanh": p.qF.hardtanh(x),
        "hardsigmoid": p.qF.hardsigmoid(x), "elu": p.qF.elu(x, 0.05, 60),
        "celu": p.qF.celu(x, 0.05, 60), "hardswish": p.qF.hardswish(x, 0.05, 30),
        "clamp": p.qF.clamp(x, -1.0, 1.0), "leaky_relu": p.qF.leaky_relu(x, 0.1),
        "threshold": p.qF.threshold(x, 0.2, 0.1), "add": q.add(x, y, 0.05, 77),
        "mul": q.mul(x, y, 0.05, 77), "add_relu": q.add_relu(x, y, 0.05, 77),
        "add_scalar": q.add_scalar(x, 3.0), "mul_scalar": q.mul_scalar(x, -0.5),
        "cat": q.cat([x, y], 0, 0.06, 55),
        "matmul": q.matmul(x, y.transpose(2, 3).contiguous(), 0.1, 100)}.items()}


@case
def histogram_observer(torch):
    p, results = parts(torch), {}
    for bins, reduce in ((2048, False), (256, True)):
        observer = p.Q.HistogramObserver(bins, reduce_range=reduce)
        for scale in (1, 3, 2):
            observer((torch.randn(400) * scale).exp() if scale == 3 else torch.randn(400) * scale)
        scale, zero = observer.calculate_qparams()
        results[str(bins)] = {"scale": scale, "zero": zero, "keys": list(observer.state_dict()),
                              "histogram": observer.histogram.nonzero().numel() if bins > 256
                              else observer.histogram}
    return results


@case
def printed_forms(torch):
    p = parts(torch)
    learning = p.Q.get_default_qat_qconfig("x86")
    ones = torch.nn.Parameter(torch.ones(4))
    modules = [
        p.nnq.Conv1d(2, 4, 3, padding=1), p.nnq.Embedding(4, 3), p.nnq.QFunctional(),
        p.nnq.FloatFunctional(), p.nnq.LayerNorm(4, ones, ones, 0.1, 3),
        p.nnq.InstanceNorm2d(4, ones, ones, 0.1, 3), p.nnq.Quantize(0.1, 3, torch.quint8),
        p.nnq.DeQuantize(), p.nnq.PReLU(0.1, 2), p.nnq.Sigmoid(0.1, 2), p.nnq.Softmax(1, 0.1, 2),
        p.nnqd.Conv2d(2, 4, 3), p.nnqat.Linear(3, 2, qconfig=learning),
        p.nniqat.ConvBnReLU2d(2, 4, 3, bias=True, qconfig=learning),
        p.nniqat.LinearBn1d(3, 4, qconfig=learning), p.nniq.LinearLeakyReLU(2, 4, 0.1),
        p.nniq.BNReLU2d(4), p.nniq.ConvAdd2d(2, 4, 3), p.nnqr.LSTMCell(3, 2), p.nnqr.LSTM(3, 2),
        p.nnqa.LSTM(3, 2), p.nnqa.MultiheadAttention(4, 2)]
    return {str(n): {"repr": repr(m), "keys": list(m.state_dict()), "versions":
                     {k: dict(v) for k, v in m.state_dict()._metadata.items() if "." not in k}}
            for n, m in enumerate(modules)}


@case
def choices(torch):
    p, results = parts(torch), {}

    def short(value):
        text = re.sub(r"(torch|flambeau)\.[\w.]*\.| at 0x\w+| of type object", "", repr(value))
        return text.replace("<built-in method", "<function")
    for backend in ("x86", "qnnpack", "onednn"):
        results[backend] = short(p.Q.get_default_qconfig(backend))
        for version in (0, 1):
            results[f"{backend}{version}"] = short(p.Q.get_default_qat_qconfig(backend, version))
    results["mapping"] = short(p.Q.get_default_qat_qconfig_mapping("onednn"))
    for name in sorted(dir(p.Q)):
        value = getattr(p.Q, name)
        if type(value).__name__ == "QConfig" or (name.startswith("default_")
                                                 and hasattr(value, "p")):
            results[name] = short(value)
    for name in ("static_quant", "qat", "dynamic_quant"):
        results[name] = " ".join(f"{k.__name__}:{v.__name__}" for k, v in getattr(
            p.Q, f"get_default_{name}_module_mappings")().items())
    return {name: results[name] for name in sorted(results)}
