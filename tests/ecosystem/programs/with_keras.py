"""Keras on the torch backend: a convolutional classifier and a recurrent one: fit, save, load."""
# needs: keras
import json
import os
import tempfile

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
images = rng.normal(size=(48, 8, 8, 1)).astype("float32")
labels = (images.mean((1, 2, 3)) > 0).astype("int64")

model = keras.Sequential([
    keras.Input((8, 8, 1)),
    keras.layers.Conv2D(4, 3, activation="relu"),
    keras.layers.BatchNormalization(),
    keras.layers.MaxPooling2D(),
    keras.layers.Flatten(),
    keras.layers.Dropout(0.2),
    keras.layers.Dense(2, activation="softmax"),
])
model.compile(optimizer=keras.optimizers.Adam(0.01), loss="sparse_categorical_crossentropy",
              metrics=["accuracy"])
history = model.fit(images, labels, batch_size=16, epochs=3, verbose=0, validation_split=0.25)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.keras")
    model.save(path)
    again = keras.models.load_model(path)
prediction = model.predict(images, verbose=0)
same = np.abs(prediction - again.predict(images, verbose=0)).max()

inputs = keras.Input((6,), dtype="int32")
hidden = keras.layers.Embedding(20, 8)(inputs)
hidden = keras.layers.Bidirectional(keras.layers.LSTM(5, return_sequences=True))(hidden)
hidden = keras.layers.MultiHeadAttention(2, 4)(hidden, hidden)
hidden = keras.layers.LayerNormalization()(hidden)
hidden = keras.layers.GRU(4)(hidden)
text = keras.Model(inputs, keras.layers.Dense(1)(hidden))
text.compile(optimizer="sgd", loss="mse")
words = rng.integers(0, 20, size=(32, 6))
text_history = text.fit(words, words.mean(1, keepdims=True) / 20, epochs=3, verbose=0,
                        batch_size=8)
gradient = torch.autograd.grad(
    keras.ops.logsumexp(keras.ops.convert_to_tensor(text(words))),
    [v.value for v in text.trainable_variables])

print(json.dumps({
    "loss": history.history["loss"],
    "accuracy": history.history["accuracy"],
    "validation": history.history["val_loss"],
    "prediction": prediction[:3].ravel().tolist(),
    "reloaded": float(same),
    "parameters": model.count_params(),
    "text_loss": text_history.history["loss"],
    "gradient": [float(g.abs().sum()) for g in gradient],
}))
