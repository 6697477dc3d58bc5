"""`SummaryWriter`: what happens during training, written for TensorBoard."""
from __future__ import annotations

import os
import time
from typing import Any

from flambeau.utils.tensorboard import summary
from flambeau.utils.tensorboard._package import load, protocol


class FileWriter:
    """Events with their steps and times, into one file."""

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: int = 120,
                 filename_suffix: str = ""):
        module = load("tensorboard.summary.writer.event_file_writer")
        self.event_writer = module.EventFileWriter(str(log_dir), max_queue, flush_secs,
                                                   filename_suffix)

    def get_logdir(self) -> str:
        """The folder of the file."""
        return self.event_writer.get_logdir()

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Write an event."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: Any = None, walltime: float | None = None
                    ) -> None:
        """Write a summary."""
        self.add_event(protocol("event").Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Write what is queued."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what is queued, and close the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Write into a new file of the same folder."""
        self.event_writer.reopen()


class SummaryWriter:
    """Writes scalars, histograms, pictures and more for TensorBoard, into `log_dir`, or a folder
    of `runs/` named by time, host and `comment`. `tensorboard --logdir runs` shows them.

    >>> writer = SummaryWriter("runs/first")                                  # doctest: +SKIP
    >>> for step in range(100):                                               # doctest: +SKIP
    ...     writer.add_scalar("loss", 1 / (1 + step), step)
    >>> writer.close()                                                        # doctest: +SKIP
    """

    def __init__(self, log_dir: Any = None, comment: str = "", purge_step: int | None = None,
                 max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""):
        if not log_dir:
            import socket
            from datetime import datetime
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = log_dir
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: Any = None
        self.all_writers: dict[Any, FileWriter] = {}
        self._get_file_writer()
        self.default_bins = summary.default_bins()

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None:
            self.file_writer = self._open(self.log_dir)
            if self.purge_step is not None:
                step = self.purge_step
                pb = protocol("event")
                self.file_writer.add_event(pb.Event(step=step, file_version="brain.Event:2"))
                self.file_writer.add_event(pb.Event(
                    step=step, session_log=pb.SessionLog(status=pb.SessionLog.START)))
                self.purge_step = None
        return self.file_writer

    def _open(self, folder: Any) -> FileWriter:
        writer = FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)
        self.all_writers[writer.get_logdir()] = writer
        return writer

    def _write(self, message: Any, global_step: Any, walltime: float | None) -> None:
        self._get_file_writer().add_summary(message, global_step, walltime)

    def get_logdir(self) -> Any:
        """The folder that is written to."""
        return self.log_dir

    def add_scalar(self, tag: str, scalar_value: Any, global_step: Any = None,
                   walltime: float | None = None, new_style: bool = False,
                   double_precision: bool = False) -> None:
        """A number, one point of the curve `tag`."""
        message = summary.scalar(tag, scalar_value, new_style, double_precision)
        self._write(message, global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: Any = None,
                    walltime: float | None = None) -> None:
        """Several numbers, for curves in one chart."""
        walltime = time.time() if walltime is None else walltime
        self._get_file_writer()
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.get_logdir(), f"{main_tag.replace('/', '_')}_{tag}")
            writer = self.all_writers.get(folder) or self._open(folder)
            self.all_writers[folder] = writer
            writer.add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: Any = None,
                   walltime: float | None = None) -> None:
        """A whole tensor."""
        self._write(summary.tensor(tag, tensor), global_step, walltime)

    def add_histogram(self, tag: str, values: Any, global_step: Any = None,
                      bins: Any = "tensorflow", walltime: float | None = None,
                      max_bins: int | None = None) -> None:
        """How values are distributed; `bins` as `numpy.histogram` takes them."""
        if isinstance(bins, str) and bins == "tensorflow":
            bins = self.default_bins
        self._write(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(self, tag: str, min: float, max: float, num: float, sum: float,
                          sum_squares: float, bucket_limits: Any, bucket_counts: Any,
                          global_step: Any = None, walltime: float | None = None) -> None:
        """A histogram that is already counted."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        message = summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits,
                                        bucket_counts)
        self._write(message, global_step, walltime)

    def add_image(self, tag: str, img_tensor: Any, global_step: Any = None,
                  walltime: float | None = None, dataformats: str = "CHW") -> None:
        """A picture."""
        self._write(summary.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_images(self, tag: str, img_tensor: Any, global_step: Any = None,
                   walltime: float | None = None, dataformats: str = "NCHW") -> None:
        """Pictures, as a grid."""
        self._write(summary.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_image_with_boxes(self, tag: str, img_tensor: Any, box_tensor: Any,
                             global_step: Any = None, walltime: float | None = None,
                             rescale: float = 1, dataformats: str = "CHW", labels: Any = None
                             ) -> None:
        """A picture with boxes (left, top, right, bottom) drawn on it."""
        labels = [labels] if isinstance(labels, str) else labels
        message = summary.image(tag, img_tensor, dataformats, rescale, box_tensor, labels)
        self._write(message, global_step, walltime)

    def add_figure(self, tag: str, figure: Any, global_step: Any = None, close: bool = True,
                   walltime: float | None = None) -> None:
        """A figure of matplotlib, or several, as pictures."""
        import numpy as np
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        def picture(figure: Any) -> np.ndarray:
            canvas = FigureCanvasAgg(figure)
            canvas.draw()
            pixels = np.asarray(canvas.buffer_rgba())[:, :, :3]
            if close:
                pyplot.close(figure)
            return pixels.transpose(2, 0, 1)
        if isinstance(figure, list):
            self.add_images(tag, np.stack([picture(f) for f in figure]), global_step, walltime)
        else:
            self.add_image(tag, picture(figure), global_step, walltime)

    def add_video(self, tag: str, vid_tensor: Any, global_step: Any = None, fps: float = 4,
                  walltime: float | None = None) -> None:
        """Not offered."""
        raise NotImplementedError("SummaryWriter.add_video: flambeau encodes no videos")

    def add_audio(self, tag: str, snd_tensor: Any, global_step: Any = None,
                  sample_rate: int = 44100, walltime: float | None = None) -> None:
        """Sound: samples from -1 to 1, (1, L)."""
        self._write(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step: Any = None,
                 walltime: float | None = None) -> None:
        """Text, in Markdown."""
        self._write(summary.text(tag, text_string), global_step, walltime)

    def add_onnx_graph(self, prototxt: Any) -> None:
        """Not offered."""
        raise NotImplementedError("SummaryWriter.add_onnx_graph: flambeau reads no ONNX")

    def add_graph(self, model: Any, input_to_model: Any = None, verbose: bool = False,
                  use_strict_trace: bool = True) -> None:
        """Not offered."""
        raise NotImplementedError("SummaryWriter.add_graph: flambeau has no TorchScript graphs")

    def add_embedding(self, mat: Any, metadata: Any = None, label_img: Any = None,
                      global_step: Any = None, tag: str = "default", metadata_header: Any = None
                      ) -> None:
        """Points for TensorBoard's projector, (N, D), with labels."""
        if label_img is not None:
            raise NotImplementedError("SummaryWriter.add_embedding: pictures as labels")
        points = summary.as_array(mat)
        name = f"{0 if global_step is None else global_step:05d}"
        folder = os.path.join(str(self.get_logdir()), name, tag)
        os.makedirs(folder, exist_ok=True)
        _table(os.path.join(folder, "tensors.tsv"), points.tolist())
        lines = [f'embeddings {{\ntensor_name: "{tag}:{name}"',
                 f'tensor_path: "{name}/{tag}/tensors.tsv"']
        if metadata is not None:
            assert len(points) == len(metadata), "#labels should equal with #data points"
            rows = [[label] if metadata_header is None else label for label in metadata]
            header = [] if metadata_header is None else [metadata_header]
            _table(os.path.join(folder, "metadata.tsv"), header + rows)
            lines.append(f'metadata_path: "{name}/{tag}/metadata.tsv"')
        with open(os.path.join(str(self.get_logdir()), "projector_config.pbtxt"), "a") as file:
            file.write("\n".join([*lines, "}"]) + "\n")

    def add_pr_curve(self, tag: str, labels: Any, predictions: Any, global_step: Any = None,
                     num_thresholds: int = 127, weights: Any = None,
                     walltime: float | None = None) -> None:
        """Precision and recall of predictions from 0 to 1."""
        message = summary.pr_curve(tag, labels, predictions, num_thresholds, weights)
        self._write(message, global_step, walltime)

    def add_pr_curve_raw(self, tag: str, true_positive_counts: Any, false_positive_counts: Any,
                         true_negative_counts: Any, false_negative_counts: Any, precision: Any,
                         recall: Any, global_step: Any = None, num_thresholds: int = 127,
                         weights: Any = None, walltime: float | None = None) -> None:
        """Precision and recall that are already counted."""
        rows = (true_positive_counts, false_positive_counts, true_negative_counts,
                false_negative_counts, precision, recall)
        self._write(summary.pr_curve_raw(tag, rows, num_thresholds), global_step, walltime)

    def add_custom_scalars(self, layout: dict[str, Any]) -> None:
        """`{category: {chart: ["Multiline" or "Margin", tags]}}`: charts of several curves."""
        self._write(summary.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(self, tags: list[str], category: str = "default",
                                          title: str = "untitled") -> None:
        """One chart of several curves."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags: list[str], category: str = "default",
                                       title: str = "untitled") -> None:
        """One chart of a curve and its lower and upper bound."""
        assert len(tags) == 3
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_mesh(self, tag: str, vertices: Any, colors: Any = None, faces: Any = None,
                 config_dict: Any = None, global_step: Any = None, walltime: float | None = None
                 ) -> None:
        """Points in space, (B, N, 3), with colours and triangles."""
        message = summary.mesh(tag, vertices, colors, faces, config_dict)
        self._write(message, global_step, walltime)

    def add_hparams(self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any],
                    hparam_domain_discrete: Any = None, run_name: str | None = None,
                    global_step: Any = None) -> None:
        """Hyperparameters, and what came of them."""
        messages = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(str(self.get_logdir()), run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as writer:
            for message in messages:
                writer.file_writer.add_summary(message, global_step)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def flush(self) -> None:
        """Write what is queued."""
        for writer in self.all_writers.values():
            writer.flush()

    def close(self) -> None:
        """Write what is queued, and close the files; a later call opens a new one."""
        for writer in self.all_writers.values():
            writer.flush()
            writer.close()
        self.file_writer, self.all_writers = None, {}

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


def _table(path: str, rows: Any) -> None:
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            file.write("\t".join(map(str, row)) + "\n")


__all__ = ["FileWriter", "SummaryWriter"]
