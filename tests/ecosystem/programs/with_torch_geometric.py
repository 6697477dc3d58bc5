"""Graph networks: convolutions, attention, pooling, sampling, heterogeneous graphs."""
# needs: torch_geometric
import json
import warnings

import torch
from torch import nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.nn import (
    GATConv,
    GCNConv,
    GINConv,
    HeteroConv,
    MessagePassing,
    SAGEConv,
    TransformerConv,
    global_add_pool,
    global_mean_pool,
)
from torch_geometric.transforms import AddSelfLoops, Compose, NormalizeFeatures, ToUndirected
from torch_geometric.utils import (
    degree,
    dropout_edge,
    erdos_renyi_graph,
    k_hop_subgraph,
    scatter,
    softmax,
    to_dense_adj,
)

warnings.simplefilter("ignore")
torch.manual_seed(0)


def graph(n):
    data = Data(x=torch.rand(n, 6), edge_index=erdos_renyi_graph(n, 0.3),
                y=torch.randint(0, 3, (1,)))
    return Compose([ToUndirected(), AddSelfLoops(), NormalizeFeatures()])(data)


graphs = [graph(n) for n in range(5, 17)]


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = GCNConv(6, 8), GATConv(8, 4, heads=2, dropout=0.1)
        self.c = GINConv(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)))
        self.d, self.out = TransformerConv(8, 4, heads=2), nn.Linear(16, 3)

    def forward(self, data):
        x = self.a(data.x, data.edge_index).relu()
        x = self.b(x, data.edge_index).relu()
        x = self.d(self.c(x, data.edge_index), data.edge_index)
        return self.out(torch.cat([global_mean_pool(x, data.batch),
                                   global_add_pool(x, data.batch)], 1))


class Edges(MessagePassing):
    def __init__(self):
        super().__init__(aggr="max")
        self.mlp = nn.Linear(12, 5)

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)

    def message(self, x_i, x_j):
        return self.mlp(torch.cat([x_i, x_j - x_i], 1))


model = Network()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
losses = []
for _ in range(3):
    for batch in DataLoader(graphs, batch_size=4, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), batch.y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

first = graphs[-1]
edges = Edges()
edges(first.x, first.edge_index).square().sum().backward()

hetero = HeteroData()
hetero["user"].x, hetero["item"].x = torch.rand(4, 6), torch.rand(5, 6)
hetero["user", "buys", "item"].edge_index = torch.tensor([[0, 1, 2, 3], [4, 3, 2, 0]])
hetero["item", "bought", "user"].edge_index = torch.tensor([[4, 3, 1], [0, 1, 2]])
convolution = HeteroConv({kind: SAGEConv((6, 6), 3) for kind in hetero.edge_types})
mixed = convolution(hetero.x_dict, hetero.edge_index_dict)
nodes, _, mapping, _ = k_hop_subgraph(0, 2, first.edge_index, relabel_nodes=True)
print(json.dumps({
    "losses": losses,
    "weights": [p.norm().item() for p in model.parameters()],
    "gradients": [p.grad.norm().item() for p in edges.parameters()],
    "mixed": {k: v.sum().item() for k, v in mixed.items()},
    "degree": degree(first.edge_index[0]).tolist(),
    "dropped": dropout_edge(first.edge_index, p=0.5)[0].shape[1],
    "softmax": softmax(first.x[first.edge_index[0], 0], first.edge_index[1])[:5].tolist(),
    "scatter": scatter(first.x[first.edge_index[0]], first.edge_index[1],
                       reduce="mean")[0].tolist(),
    "dense": to_dense_adj(first.edge_index).sum().item(),
    "nodes": nodes.tolist(),
    "mapping": mapping.tolist(),
}))
