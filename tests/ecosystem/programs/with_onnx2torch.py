"""A model from ONNX's graph becomes a module."""
# needs: onnx2torch, onnx
import json

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx2torch import convert

rng = np.random.default_rng(0)
weights = {"w": rng.normal(size=(4, 1, 3, 3)), "b": rng.normal(size=4),
           "v": rng.normal(size=(36, 3)), "shape": np.array([0, -1])}
weights = {k: numpy_helper.from_array(v.astype("int64" if k == "shape" else "float32"), k)
           for k, v in weights.items()}
nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
         helper.make_node("Relu", ["c"], ["r"]),
         helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
         helper.make_node("Reshape", ["p", "shape"], ["f"]),
         helper.make_node("MatMul", ["f", "v"], ["m"]),
         helper.make_node("Softmax", ["m"], ["y"], axis=1)]
graph = helper.make_graph(
    nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 1, 6, 6])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])], list(weights.values()))
source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
onnx.checker.check_model(source)
model = convert(source)
torch.manual_seed(0)
x = torch.rand(2, 1, 6, 6)
out = model(x)
out[:, 0].sum().backward()
print(json.dumps({"out": out.flatten().tolist(),
                  "gradients": [p.grad.norm().item() for p in model.parameters()],
                  "nodes": [str(n.op) for n in model.graph.nodes]}))
