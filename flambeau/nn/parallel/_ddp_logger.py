"""What `DistributedDataParallel` can say of itself: how it was made, how long passes take."""
from __future__ import annotations

import os
from typing import Any

from flambeau import Tensor

_TYPE_NAMES = {"float32": "float", "float64": "double", "float16": "c10::Half",
               "bfloat16": "c10::BFloat16", "complex64": "c10::complex<float>",
               "complex128": "c10::complex<double>"}
_SPANS = {"forward_compute_time": ("forward_compute_time_start", "backward_compute_time_start"),
          "backward_compute_time": ("backward_compute_time_start", "backward_compute_time_end"),
          "backward_comm_time": ("backward_comm_time_start", "backward_comm_time_end"),
          "backward_compute_comm_overlap_time": ("backward_comm_time_start",
                                                 "backward_compute_time_end")}
_ALWAYS_SAMPLED = 10                    # of the first passes


def _variable(name: str) -> str:
    return os.environ.get(name, "N/A")


class Logger:
    """Figures about a `Reducer`."""

    def __init__(self, reducer: Any):
        self.reducer, self.rate = reducer, 100
        self._said: dict[str, Any] = {}
        self._totals, self._samples = dict.fromkeys(_SPANS, 0), 0

    def set_construction_data_and_log(self, module_name: str, device_ids: Any, output_device: Any,
                                      broadcast_buffers: bool, has_sync_bn: bool,
                                      static_graph: bool) -> None:
        """Note how the module was wrapped."""
        reducer, group = self.reducer, self.reducer.group
        sizes = ", ".join(str(sum(map(_size, bucket))) for bucket in reducer.buckets)
        types = [str(p.dtype).rpartition(".")[2] for bucket in reducer.buckets for p in bucket]
        self._said.update(
            module_name=module_name, device_ids="", output_device=-1, iteration=0,
            broadcast_buffers=int(broadcast_buffers), has_sync_bn=int(has_sync_bn),
            is_multi_device_module=0, world_size=group.size(), rank=group.rank(),
            backend_name=group.name(), bucket_cap_bytes=reducer.bytes_cap,
            find_unused_parameters=int(reducer.find_unused),
            gradient_as_bucket_view=int(reducer.as_views), bucket_sizes=sizes,
            dtypes=", ".join(dict.fromkeys(_TYPE_NAMES.get(name, name) for name in types)),
            num_parameter_tensors=len(reducer.parameters),
            total_parameter_size_bytes=sum(map(_size, reducer.parameters)),
            master_port=_variable("MASTER_PORT"), master_addr=_variable("MASTER_ADDR"),
            cuda_visible_devices=_variable("CUDA_VISIBLE_DEVICES"),
            torch_distributed_debug=_variable("TORCH_DISTRIBUTED_DEBUG"))
        if group.name() == "gloo":
            self._said.update(gloo_socket_ifname=_variable("GLOO_SOCKET_IFNAME"),
                              gloo_device_transport=_variable("GLOO_DEVICE_TRANSPORT"),
                              gloo_num_threads=2)
        if static_graph:
            self._set_static_graph()

    def set_runtime_stats_and_log(self) -> None:
        """Note how long the parts of the last pass took, of the first ten and of every
        hundredth, or so, after."""
        reducer, times = self.reducer, self.reducer.times
        count = reducer.iterations
        if not count or "backward_comm_time_end" not in times \
                or (count > _ALWAYS_SAMPLED and count % self.rate):
            return
        spans = {name: max(times[end] - times[begin], 0) for name, (begin, end) in _SPANS.items()}
        self._samples += 1
        for name, span in spans.items():
            self._totals[name] += span
        self._said.update(
            times, iteration=count, num_buckets_reduced=len(reducer.buckets),
            unused_parameter_size=sum(_size(p) for i, p in enumerate(reducer.parameters)
                                      if i not in reducer.ready),
            prev_iteration_grad_ready_order_indices=", ".join(map(str, reducer.ready)),
            **spans, **{f"avg_{name}": total // self._samples
                        for name, total in self._totals.items()})

    def _set_comm_hook_name(self, name: str) -> None:
        self._said["comm_hook"] = name

    def _set_uneven_input_join(self) -> None:
        self._said["join_uneven_inputs"] = True

    def _set_static_graph(self) -> None:
        self._said["static_graph"] = 1

    def set_error_and_log(self, error: str) -> None:
        """Note what went wrong."""
        self._said.update(has_error=1, error=error, iteration=self.reducer.iterations)

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """All that is known."""
        return dict(self._said)


def _size(parameter: Tensor) -> int:
    return parameter.numel() * parameter.element_size()


_VARIABLES = """
RANK LOCAL_RANK WORLD_SIZE MASTER_PORT MASTER_ADDR CUDA_VISIBLE_DEVICES GLOO_SOCKET_IFNAME
GLOO_DEVICE_TRANSPORT NCCL_SOCKET_IFNAME TORCH_NCCL_BLOCKING_WAIT NCCL_DEBUG NCCL_DEBUG_SUBSYS
NCCL_IB_DISABLE NCCL_P2P_DISABLE NCCL_P2P_LEVEL NCCL_SHM_DISABLE NCCL_SOCKET_NTHREADS
NCCL_NSOCKS_PERTHREAD NCCL_BUFFSIZE NCCL_NTHREADS NCCL_RINGS NCCL_MAX_NCHANNELS NCCL_MIN_NCHANNELS
NCCL_CHECKS_DISABLE NCCL_CHECK_POINTERS NCCL_LAUNCH_MODE NCCL_IB_HCA NCCL_IB_TIMEOUT
NCCL_IB_RETRY_CNT NCCL_IB_GID_INDEX NCCL_IB_SL NCCL_IB_TC NCCL_IB_AR_THRESHOLD
NCCL_IB_CUDA_SUPPORT NCCL_NET_GDR_LEVEL NCCL_NET_GDR_READ NCCL_SINGLE_RING_THRESHOLD
NCCL_LL_THRESHOLD NCCL_TREE_THRESHOLD NCCL_ALGO NCCL_PROTO NCCL_IGNORE_CPU_AFFINITY
NCCL_DEBUG_FILE NCCL_COLLNET_ENABLE NCCL_TOPO_FILE NCCL_TOPO_DUMP_FILE
TORCH_NCCL_ASYNC_ERROR_HANDLING
""".split()


def _dump_DDP_relevant_env_vars() -> None:
    """Print the environment variables that matter when processes share gradients."""
    for name in _VARIABLES:
        print(f"env:{name}={_variable(name)}")
