"""Start and await messages between ranks, several at once."""
from __future__ import annotations

import logging

from .... import distributed as dist

logger = logging.getLogger(__name__)


def _batch_p2p(p2p_ops: list[dist.P2POp], desc: str | None = None) -> list[dist.Work]:
    """Start messages together; `desc` is for the log."""
    if not p2p_ops:
        return []
    logger.debug("batch_p2p %s%s", f"{desc}: " if desc else "", p2p_ops)
    return dist.batch_isend_irecv(p2p_ops)


def _sorted_batch_p2p(p2p_ops: list[dist.P2POp],
                      desc: str | None = None) -> dict[int, list[dist.Work]]:
    """Start messages together, those of each other rank in a batch; the works by rank."""
    by_peer: dict[int, list[dist.P2POp]] = {}
    for op in p2p_ops:
        by_peer.setdefault(op.peer, []).append(op)
    return {peer: _batch_p2p(by_peer[peer], desc) for peer in sorted(by_peer)}


def _wait_batch_p2p(work: list[dist.Work]) -> None:
    for one in work:
        one.wait()
