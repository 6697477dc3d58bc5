"""sentence-transformers: embeddings from a small BERT, losses, and a step of fine-tuning."""
# needs: sentence_transformers, transformers
# tolerance: 2e-3
import json
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer, losses, models, util
from transformers import BertConfig, BertModel, BertTokenizer

torch.manual_seed(0)
words = "[PAD] [UNK] [CLS] [SEP] [MASK] a the cat dog sat ran on mat road big small".split()
Path("bert").mkdir()
Path("bert/vocab.txt").write_text("\n".join(words))
BertTokenizer("bert/vocab.txt").save_pretrained("bert")
BertModel(BertConfig(vocab_size=len(words), hidden_size=32, num_hidden_layers=2,
                     num_attention_heads=4, intermediate_size=48, max_position_embeddings=32,
                     hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
          ).save_pretrained("bert")
transformer = models.Transformer("bert", max_seq_length=16)
pooling = models.Pooling(32, pooling_mode="mean")
dense = models.Dense(32, 16)
model = SentenceTransformer(modules=[transformer, pooling, dense, models.Normalize()],
                            device="cpu")
sentences = ["the cat sat on the mat", "a big dog ran", "the small cat", "a dog ran on the road"]
before = model.encode(sentences, convert_to_tensor=True, show_progress_bar=False)
similar = util.cos_sim(before, before)
found = util.semantic_search(before[:1], before, top_k=3)

results = {}
pairs = [model.tokenize(sentences[:2]), model.tokenize(sentences[2:])]
for name, loss, labels in (
        ("ranking", losses.MultipleNegativesRankingLoss(model), None),
        ("cosine", losses.CosineSimilarityLoss(model), torch.tensor([0.9, 0.1])),
        ("contrastive", losses.ContrastiveLoss(model), torch.tensor([1, 0])),
        ("triplet", losses.BatchAllTripletLoss(model), None)):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    history = []
    for _ in range(2):
        optimizer.zero_grad()
        features = pairs if name != "triplet" else [model.tokenize(sentences)]
        value = loss([dict(f) for f in features],
                     labels if name != "triplet" else torch.tensor([0, 1, 0, 1]))
        value.backward()
        optimizer.step()
        history.append(value.item())
    results[name] = history
after = model.encode(sentences, convert_to_tensor=True, show_progress_bar=False)
model.save("saved")
again = SentenceTransformer("saved", device="cpu").encode(sentences, convert_to_tensor=True,
                                                          show_progress_bar=False)
print(json.dumps({
    "similar": similar.tolist(), "found": [hit["corpus_id"] for hit in found[0]],
    "losses": results, "after": after.mean(1).tolist(), "saved": torch.equal(after, again),
}))
