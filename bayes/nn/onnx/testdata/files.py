"""Writes the ONNX files of this folder, and want.json with what onnxruntime makes of rows.

pip install onnx onnxruntime scikit-learn skl2onnx; python files.py
"""
import json

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from skl2onnx import to_onnx
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

rng = np.random.default_rng(1)


def weights(name, *shape, scale=None):
    values = rng.normal(size=shape) * (scale or 1 / np.sqrt(np.prod(shape[1:])))
    return numpy_helper.from_array(values.astype(np.float32), name)


def saved(name, nodes, inputs, outputs, tensors):
    graph = helper.make_graph(nodes, name, inputs, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, name + ".onnx")
    return model


def values(model, rows, tensor):
    """What onnxruntime computes for rows, up to a tensor."""
    cut = onnx.ModelProto()
    cut.CopyFrom(model)
    cut.graph.output.append(helper.make_tensor_value_info(tensor, TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(cut.SerializeToString())
    out = session.run([tensor], {session.get_inputs()[0].name: rows})[0]
    return out.reshape(len(rows), -1).tolist()


def conv(source, to, w, k=3, stride=1, group=1):
    return helper.make_node("Conv", [source, w], [to], kernel_shape=[k, k], pads=[k // 2] * 4, strides=[stride] * 2,
                            group=group)


node, info = helper.make_node, helper.make_tensor_value_info
want = {}

# scikit-learn's perceptron, which knows digits.
X, y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
perceptron = MLPClassifier((16,), max_iter=60, random_state=0).fit(X[:1200], y[:1200])
model = to_onnx(perceptron, X[:1], options={"zipmap": False}, target_opset=17)
onnx.save(model, "digits.onnx")
last = [n for n in model.graph.node if n.op_type in ("MatMul", "Gemm")][-1]
want["digits"] = {"rows": X[:3].tolist(), "features": values(model, X[:3], last.input[0]),
                  "p": perceptron.predict_proba(X[:3]).tolist()}

# A residual network of pictures with hard sigmoids, as MobileNetV3 has, and with a batch normalisation.
tensors = [weights("w1", 6, 3, 3, 3), weights("w2", 6, 6, 3, 3), weights("se1", 2, 6, 1, 1), weights("se2", 6, 2, 1, 1),
           weights("dw", 6, 1, 3, 3), weights("fc", 6, 4), weights("fcb", 4, scale=.1)]
for name, v in (("g", 1 + .1 * rng.normal(size=6)), ("b", .1 * rng.normal(size=6)), ("mu", .1 * rng.normal(size=6)),
                ("va", 1 + .1 * rng.random(6))):
    tensors.append(numpy_helper.from_array(v.astype(np.float32), name))
model = saved("pictures", [
    conv("x", "a1", "w1", stride=2), node("BatchNormalization", ["a1", "g", "b", "mu", "va"], ["a2"]),
    node("Relu", ["a2"], ["a3"]), conv("a3", "a4", "w2"), node("GlobalAveragePool", ["a4"], ["s0"]),
    conv("s0", "s1", "se1", k=1), node("Relu", ["s1"], ["s2"]), conv("s2", "s3", "se2", k=1),
    node("HardSigmoid", ["s3"], ["s4"], alpha=1 / 6., beta=.5), node("Mul", ["a4", "s4"], ["a5"]),
    node("Add", ["a5", "a3"], ["a6"]), conv("a6", "a7", "dw", group=6), node("GlobalMaxPool", ["a7"], ["p"]),
    node("Dropout", ["p"], ["p1"]), node("Flatten", ["p1"], ["f"]), node("Gemm", ["f", "fc", "fcb"], ["z"]),
    node("Softmax", ["z"], ["y"])],
    [info("x", TensorProto.FLOAT, ["n", 3, "h", "w"])], [info("y", TensorProto.FLOAT, ["n", 4])], tensors)
x = rng.random((3, 3, 8, 8)).astype(np.float32)
mean, std_dev = (np.array(v, np.float32).reshape(1, 3, 1, 1) for v in ([.5, .4, .3], [.2, .3, .4]))
want["pictures"] = {"rows": x.transpose(0, 2, 3, 1).reshape(3, -1).tolist(), "features": values(model, x, "f"),
                    "standardised": values(model, (x - mean) / std_dev, "f"),
                    "reversed": values(model, x[:, ::-1].copy(), "f"), "p": values(model, x, "y")}

# Bytes, as of files of unknown type: an embedding, and a convolution along them.
model = saved("bytes", [
    node("Gather", ["e", "b"], ["g"]), node("Transpose", ["g"], ["t"], perm=[0, 2, 1]),
    node("Conv", ["t", "w"], ["c"], kernel_shape=[3]), node("GlobalMaxPool", ["c"], ["m"]),
    node("Squeeze", ["m", "ax"], ["f"]), node("MatMul", ["f", "fc"], ["y"])],
    [info("b", TensorProto.INT32, ["n", 12])], [info("y", TensorProto.FLOAT, ["n", 3])],
    [weights("e", 16, 5), weights("w", 8, 5, 3), weights("fc", 8, 3),
     numpy_helper.from_array(np.array([2], np.int64), "ax")])
b = rng.integers(0, 16, (3, 12)).astype(np.int32)
want["bytes"] = {"rows": b.tolist(), "features": values(model, b, "f")}

# Convolutions of each channel by itself, and of single pixels, of several steps, gaps, borders and kernels.
model = saved("channels", [
    node("Conv", ["x", "w1", "b1"], ["a"], kernel_shape=[3, 2], pads=[1, 0, 2, 1], strides=[2, 1], dilations=[2, 2],
         group=3),
    node("Conv", ["a", "w2"], ["c"], kernel_shape=[1, 3], strides=[1, 2], group=3),
    node("Conv", ["c", "w3", "b3"], ["d"], kernel_shape=[1, 1], auto_pad="NOTSET"),
    node("Conv", ["d", "w4"], ["e"], kernel_shape=[1, 1], pads=[1, 0, 0, 0]),
    node("Conv", ["e", "w5", "b3"], ["g"], kernel_shape=[1, 1], strides=[2, 1]),
    node("Flatten", ["g"], ["f"]), node("MatMul", ["f", "fc"], ["y"])],
    [info("x", TensorProto.FLOAT, ["n", 3, 7, 9])], [info("y", TensorProto.FLOAT, ["n", 2])],
    [weights("w1", 3, 1, 3, 2), weights("b1", 3, scale=.5), weights("w2", 3, 1, 1, 3), weights("w3", 2, 3, 1, 1),
     weights("b3", 2, scale=.5), weights("w4", 2, 2, 1, 1), weights("w5", 2, 2, 1, 1), weights("fc", 12, 2)])
x = rng.random((2, 3, 7, 9)).astype(np.float32)
want["channels"] = {"rows": x.transpose(0, 2, 3, 1).reshape(2, -1).tolist(), "features": values(model, x, "f")}

json.dump(want, open("want.json", "w"))
