"""Values as TensorBoard's messages, one function a kind."""
from __future__ import annotations

import io
import json
import wave
from typing import Any

import numpy as np

import flambeau
from flambeau.utils.tensorboard._package import load, protocol


def as_array(x: Any) -> np.ndarray:
    """Numbers, arrays and tensors as an array of at least one element's room."""
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if isinstance(x, flambeau.Tensor):
        x = x.detach().cpu()
        return (x.float() if x.dtype is flambeau.bfloat16 else x).numpy()
    if isinstance(x, (list, tuple)):
        return np.array([v if np.isscalar(v) else as_array(v) for v in x])
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")


def _number(x: Any) -> float:
    array = np.squeeze(as_array(x))
    assert array.ndim == 0, f"Tensor should contain one element (0 dimensions). Was given size: " \
                            f"{array.size} and {array.ndim} dimensions."
    return float(array)


def _summary(**value: Any) -> Any:
    pb = protocol("summary")
    return pb.Summary(value=[pb.Summary.Value(**value)])


def _metadata(plugin: str, content: bytes = b"") -> Any:
    pb = protocol("summary")
    data = pb.SummaryMetadata.PluginData(plugin_name=plugin, content=content)
    return pb.SummaryMetadata(plugin_data=data)


def _tensor(dtype: str, shape: Any = (), **content: Any) -> Any:
    shapes = protocol("tensor_shape").TensorShapeProto
    dims = [shapes.Dim(size=size) for size in shape]
    return protocol("tensor").TensorProto(dtype=dtype, tensor_shape=shapes(dim=dims), **content)


def scalar(tag: str, value: Any, new_style: bool = False, double_precision: bool = False) -> Any:
    """One number."""
    number = _number(value)
    if not new_style:
        return _summary(tag=tag, simple_value=number)
    message = protocol("tensor").TensorProto
    tensor = message(double_val=[number], dtype="DT_DOUBLE") if double_precision \
        else message(float_val=[number], dtype="DT_FLOAT")
    return _summary(tag=tag, tensor=tensor, metadata=_metadata("scalars"))


def tensor(tag: str, value: Any) -> Any:
    """A whole tensor."""
    array = as_array(value).astype(np.float32)
    return _summary(tag=tag, metadata=_metadata("tensor"),
                    tensor=_tensor("DT_FLOAT", array.shape, float_val=array.ravel().tolist()))


def histogram_raw(tag: str, min: float, max: float, num: float, sum: float, sum_squares: float,
                  bucket_limits: Any, bucket_counts: Any) -> Any:
    """A histogram that is already counted."""
    message = protocol("summary").HistogramProto(
        min=min, max=max, num=num, sum=sum, sum_squares=sum_squares,
        bucket_limit=list(bucket_limits), bucket=list(bucket_counts))
    return _summary(tag=tag, histo=message)


def default_bins() -> list[float]:
    """Limits that grow by a tenth from 1e-12 to 1e20, on both sides of zero."""
    positive, limit = [], 1e-12
    while limit < 1e20:
        positive.append(limit)
        limit *= 1.1
    return [-limit for limit in reversed(positive)] + [0.0] + positive


def histogram(tag: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """A histogram of values, without the empty bins at the ends."""
    values = as_array(values).astype(float).ravel()
    if values.size == 0:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        padded = np.pad(counts, (0, -len(counts) % step))
        counts = padded.reshape(-1, step).sum(axis=-1)
        limits = np.append(limits[:-1][::step], limits[-1])
    used = np.flatnonzero(counts)
    if used.size == 0:
        raise ValueError("The histogram is empty, please file a bug report.")
    first, last = int(used[0]), int(used[-1]) + 1
    # one empty bin in front says where the first one begins
    counts = counts[first - 1:last] if first > 0 else np.concatenate([[0], counts[:last]])
    limits = limits[first:last + 1]
    return histogram_raw(tag, values.min(), values.max(), len(values), values.sum(),
                         values.dot(values), limits.tolist(), counts.tolist())


# ---- images, sound, text ------------------------------------------------------------------------

def grid(images: np.ndarray, columns: int = 8) -> np.ndarray:
    """A batch (N, C, H, W) as one image (C, rows·H, columns·W)."""
    if images.shape[1] == 1:
        images = np.concatenate([images] * 3, 1)
    count, channels, height, width = images.shape
    columns = min(count, columns)
    rows = -(-count // columns)
    sheet = np.zeros((channels, height * rows, width * columns), dtype=images.dtype)
    for i, image in enumerate(images):
        y, x = divmod(i, columns)
        sheet[:, y * height:(y + 1) * height, x * width:(x + 1) * width] = image
    return sheet


def to_hwc(array: np.ndarray, dataformats: str) -> np.ndarray:
    """An image, or a batch as a grid, with the colours last."""
    dataformats = dataformats.upper()
    assert len(set(dataformats)) == len(dataformats), (
        f"You can not use the same dimension shordhand twice, input_format: {dataformats}")
    assert array.ndim == len(dataformats), (
        f"size of input tensor and input format are different. tensor shape: {array.shape}, "
        f"input_format: {dataformats}")
    if len(dataformats) == 4:
        array = grid(array.transpose([dataformats.index(c) for c in "NCHW"]))
        return array.transpose(1, 2, 0)
    if len(dataformats) == 3:
        array = array.transpose([dataformats.index(c) for c in "HWC"])
        return np.concatenate([array] * 3, 2) if array.shape[2] == 1 else array
    array = array.transpose([dataformats.index(c) for c in "HW"])
    return np.stack([array] * 3, 2)


def image(tag: str, value: Any, dataformats: str = "NCHW", rescale: float = 1,
          boxes: Any = None, labels: Any = None) -> Any:
    """A picture: bytes as they are, other numbers from 0 to 1. Boxes are (left, top, right,
    bottom)."""
    from PIL import Image, ImageDraw
    array = as_array(value)
    scale = 1 if array.dtype == np.uint8 else 255
    array = to_hwc(array, dataformats).astype(np.float32)
    array = np.clip(array * scale, 0, 255).astype(np.uint8)
    picture = Image.fromarray(array)
    if boxes is not None:
        draw = ImageDraw.Draw(picture)
        for i, (left, top, right, bottom) in enumerate(as_array(boxes).reshape(-1, 4).tolist()):
            draw.rectangle([left, top, right, bottom], outline="red", width=2)
            if labels is not None:
                draw.text((left, top), labels[i], fill="red")
    height, width, channels = array.shape
    if rescale != 1:
        picture = picture.resize((int(width * rescale), int(height * rescale)))
    encoded = io.BytesIO()
    picture.save(encoded, format="PNG")
    message = protocol("summary").Summary.Image(
        height=picture.height, width=picture.width, colorspace=channels,
        encoded_image_string=encoded.getvalue())
    return _summary(tag=tag, image=message)


def audio(tag: str, value: Any, sample_rate: int = 44100) -> Any:
    """Sound: samples from -1 to 1, (1, L)."""
    array = np.squeeze(as_array(value))
    if abs(array).max() > 1:
        array = array.clip(-1, 1)
    assert array.ndim == 1, "input tensor should be 1 dimensional."
    samples = (array * np.iinfo(np.int16).max).astype("<i2")
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(samples.tobytes())
    message = protocol("summary").Summary.Audio(
        sample_rate=sample_rate, num_channels=1, length_frames=len(samples),
        encoded_audio_string=stream.getvalue(), content_type="audio/wav")
    return _summary(tag=tag, audio=message)


def text(tag: str, value: str) -> Any:
    """Text, in Markdown."""
    plugin = load("tensorboard.plugins.text.plugin_data_pb2").TextPluginData(version=0)
    return _summary(tag=f"{tag}/text_summary",
                    metadata=_metadata("text", plugin.SerializeToString()),
                    tensor=_tensor("DT_STRING", (1,), string_val=[value.encode("utf_8")]))


# ---- precision and recall, layouts, meshes, hyperparameters --------------------------------------

def pr_curve_raw(tag: str, rows: Any, num_thresholds: int = 127) -> Any:
    """Rows: true and false positives, true and false negatives, precision, recall."""
    num_thresholds = min(num_thresholds, 127)           # what the plugin shows
    plugin = load("tensorboard.plugins.pr_curve.plugin_data_pb2").PrCurvePluginData(
        version=0, num_thresholds=num_thresholds)
    data = np.stack([as_array(row) for row in rows])
    return _summary(tag=tag, metadata=_metadata("pr_curves", plugin.SerializeToString()),
                    tensor=_tensor("DT_FLOAT", data.shape, float_val=data.ravel().tolist()))


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127,
             weights: Any = None) -> Any:
    """Precision and recall of predictions from 0 to 1, over thresholds."""
    num_thresholds = min(num_thresholds, 127)
    labels, predictions = as_array(labels), as_array(predictions)
    weights = 1.0 if weights is None else as_array(weights)
    buckets = np.int32(np.floor(predictions * (num_thresholds - 1)))
    weighted = labels.astype(float) * weights
    span = (0, num_thresholds - 1)
    positive, _ = np.histogram(buckets, num_thresholds, span, weights=weighted)
    negative, _ = np.histogram(buckets, num_thresholds, span, weights=weights - weighted
                               if np.ndim(weights) else (1.0 - labels) * weights)
    tp, fp = positive[::-1].cumsum()[::-1], negative[::-1].cumsum()[::-1]
    tn, fn = fp[0] - fp, tp[0] - tp
    tiny = 1e-7
    rows = tp, fp, tn, fn, tp / np.maximum(tiny, tp + fp), tp / np.maximum(tiny, tp + fn)
    return pr_curve_raw(tag, rows, num_thresholds)


def custom_scalars(layout: dict[str, dict[str, Any]]) -> Any:
    """Which scalars TensorBoard shows in one chart."""
    pb = load("tensorboard.plugins.custom_scalar.layout_pb2")
    categories = []
    for title, charts in layout.items():
        made = []
        for name, (kind, tags) in charts.items():
            if kind == "Margin":
                assert len(tags) == 3
                series = pb.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
                made.append(pb.Chart(title=name, margin=pb.MarginChartContent(series=[series])))
            else:
                made.append(pb.Chart(title=name, multiline=pb.MultilineChartContent(tag=tags)))
        categories.append(pb.Category(title=title, chart=made))
    content = pb.Layout(category=categories).SerializeToString()
    return _summary(tag="custom_scalars__config__", metadata=_metadata("custom_scalars"),
                    tensor=_tensor("DT_STRING", string_val=[content]))


def mesh(tag: str, vertices: Any, colors: Any, faces: Any, config_dict: Any) -> Any:
    """Points in space, (B, N, 3), with colours and triangles of theirs."""
    pb = protocol("summary")
    plugin = load("tensorboard.plugins.mesh.plugin_data_pb2").MeshPluginData
    metadata = load("tensorboard.plugins.mesh.metadata")
    parts = [(vertices, plugin.VERTEX, "DT_FLOAT"), (faces, plugin.FACE, "DT_INT32"),
             (colors, plugin.COLOR, "DT_INT32")]
    parts = [part for part in parts if part[0] is not None]
    components = metadata.get_components_bitmask([kind for _, kind, _ in parts])
    values = []
    for data, kind, dtype in parts:
        array = as_array(data)
        about = metadata.create_summary_metadata(
            tag, tag, kind, components, array.shape,
            json_config=json.dumps(config_dict or {}, sort_keys=True))
        content = {"float_val" if dtype == "DT_FLOAT" else "int_val": array.ravel().tolist()}
        values.append(pb.Summary.Value(tag=metadata.get_instance_name(tag, kind), metadata=about,
                                       tensor=_tensor(dtype, array.shape, **content)))
    return pb.Summary(value=values)


def hparams(hparam_dict: dict[str, Any], metric_dict: dict[str, Any],
            hparam_domain_discrete: dict[str, Any] | None = None) -> tuple[Any, Any, Any]:
    """The experiment, the start and the end of a session with these hyperparameters."""
    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(given, dict):
            raise TypeError(f"{name} should be a dictionary, parameter `{name}`: {given}")
    api = load("tensorboard.plugins.hparams.api_pb2")
    about = load("tensorboard.plugins.hparams.metadata")
    data = load("tensorboard.plugins.hparams.plugin_data_pb2")
    discrete = hparam_domain_discrete or {}
    start = data.SessionStartInfo()
    infos = []
    for name, value in hparam_dict.items():
        if value is None:
            continue
        if isinstance(value, str):
            start.hparams[name].string_value, kind = value, api.DATA_TYPE_STRING
        elif isinstance(value, (bool, int, float, np.number, flambeau.Tensor)):
            start.hparams[name].number_value, kind = _number(value), api.DATA_TYPE_FLOAT64
        else:
            raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
        info = api.HParamInfo(name=name, type=kind)
        if name in discrete:
            info.domain_discrete.extend(discrete[name])
        infos.append(info)
    metrics = [api.MetricInfo(name=api.MetricName(tag=name)) for name in metric_dict]
    end = data.SessionEndInfo(status=api.Status.Value("STATUS_SUCCESS"))
    experiment = api.Experiment(hparam_infos=infos, metric_infos=metrics)

    def message(tag: str, **content: Any) -> Any:
        plugin = data.HParamsPluginData(version=about.PLUGIN_DATA_VERSION, **content)
        return _summary(tag=tag, metadata=_metadata(about.PLUGIN_NAME,
                                                    plugin.SerializeToString()))
    return (message(about.EXPERIMENT_TAG, experiment=experiment),
            message(about.SESSION_START_INFO_TAG, session_start_info=start),
            message(about.SESSION_END_INFO_TAG, session_end_info=end))
