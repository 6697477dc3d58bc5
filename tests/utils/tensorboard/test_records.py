"""Records as TensorBoard writes them."""

import io

from flambeau.utils.tensorboard import RecordWriter


def test_records_are_those_of_tensorboard():
    """The bytes that tensorboard's writer gave."""
    file = io.BytesIO()
    writer = RecordWriter(file)
    writer.write(b"an event")
    writer.write(b"")
    writer.flush()
    assert file.getvalue().hex() == (
        "0800000000000000ff86240f616e206576656e743e8de13d000000000000000029039807d8ea82a2")
    writer.close()
    assert writer.closed
