#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A graph network in PyTorch whose products with the graph are cbgen's: finds the communities of a graph from a few nodes
whose community is known.

    examples/python/graph_network.py [NODES [EPOCHS]]

Two layers after Kipf and Welling: H' = relu(A (H W)), where A is the graph with its nodes' own loops, scaled by the
degrees of both ends. A is a constant, or learns a weight for each edge. Each is trained with cbgen and with PyTorch's
own product of sparse CSR, from the same start; the table compares them, and the exit status is 1 when their losses
differ or too few nodes were recognised.
"""
import sys
import time
import warnings

import numpy
import scipy.sparse
import torch

from cbgen_spmv.torch import Matrix

COMMUNITIES, HIDDEN, KNOWN = 4, 16, 0.2
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
warnings.filterwarnings("ignore", "Sparse (CSR tensor support|invariant checks)")


def planted(nodes, inside=12.0, outside=2.0, seed=1):
    """A graph in which a node has so many neighbours of its own community, and of the others, on average; and the
    community of each node."""
    generator = numpy.random.default_rng(seed)
    member = generator.integers(0, COMMUNITIES, nodes)
    by_member = [numpy.flatnonzero(member == each) for each in range(COMMUNITIES)]
    ends = []
    for each in by_member:
        count = int(len(each) * inside / 2)
        ends.append(numpy.stack([generator.choice(each, count), generator.choice(each, count)]))
    ends.append(generator.integers(0, nodes, (2, int(nodes * outside / 2))))
    first, second = numpy.concatenate(ends, axis=1)
    graph = scipy.sparse.coo_matrix((numpy.ones(len(first)), (first, second)), shape=(nodes, nodes)).tocsr()
    graph = graph + graph.T + scipy.sparse.eye(nodes)
    graph.data[:] = 1
    return graph.tocsr(), member


def normalised(graph):
    """Each edge divided by the roots of the degrees of its ends."""
    scale = scipy.sparse.diags(1 / numpy.sqrt(numpy.asarray(graph.sum(axis=1)).ravel()))
    made = (scale @ graph @ scale).tocsr().astype(numpy.float32)
    parts = (torch.from_numpy(part) for part in (made.indptr, made.indices, made.data))
    return torch.sparse_csr_tensor(*parts, size=made.shape).to(DEVICE)


class PlainMatrix(torch.nn.Module):
    """The same product by PyTorch."""

    def __init__(self, csr, trainable):
        super().__init__()
        self.csr, values = csr, csr.values().detach().clone()
        self.values = torch.nn.Parameter(values) if trainable else values

    def forward(self, x):
        csr = torch.sparse_csr_tensor(self.csr.crow_indices(), self.csr.col_indices(), self.values, size=self.csr.shape)
        return csr @ x


class Network(torch.nn.Module):
    def __init__(self, graph, features):
        super().__init__()
        torch.manual_seed(3)
        self.graph = graph
        self.first = torch.nn.Linear(features, HIDDEN, bias=False)
        self.second = torch.nn.Linear(HIDDEN, COMMUNITIES, bias=False)

    def forward(self, x):
        return self.graph(self.second(torch.relu(self.graph(self.first(x)))))


def train(graph, features, member, known, epochs):
    """(the last loss, the share of nodes recognised, seconds per epoch)"""
    network = Network(graph, features.shape[1]).to(DEVICE)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
    start = 0.0
    for epoch in range(epochs):
        if epoch == 2:  # those before compile
            start = now()
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(features)[known], member[known])
        loss.backward()
        optimiser.step()
    seconds = (now() - start) / max(epochs - 2, 1)
    with torch.no_grad():
        right = (network(features).argmax(1) == member).float().mean().item()
    return loss.item(), right, seconds


def now():
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main(nodes=100000, epochs=60):
    graph, member = planted(nodes)
    csr, member = normalised(graph), torch.from_numpy(member).to(DEVICE)
    generator = torch.Generator().manual_seed(2)
    known = (torch.rand(nodes, generator=generator) < KNOWN).nonzero().ravel().to(DEVICE)
    features = torch.zeros(nodes, COMMUNITIES, device=DEVICE)
    features[known, member[known]] = 1  # what is known of a few nodes
    print(f"### graph_network.py: {nodes} nodes, {csr.values().numel()} edges, {epochs} epochs on {DEVICE}\n")
    print("| edges | product by | loss | recognised | per epoch, ms |\n| --- | --- | --: | --: | --: |")
    passed = True
    for trainable in (False, True):
        losses = []
        for name, kind in (("cbgen", Matrix), ("PyTorch", PlainMatrix)):
            loss, right, seconds = train(kind(csr, trainable=trainable), features, member, known, epochs)
            edges = "learnt" if trainable else "constant"
            print(f"| {edges} | {name} | {loss:.4f} | {100 * right:.1f} % | {1e3 * seconds:.2f} |")
            losses.append(loss)
            passed &= right > 0.85
        passed &= abs(losses[0] - losses[1]) < 0.02 + 0.02 * losses[1]
    print(f"check: the losses agree, and 85 % of the nodes are recognised: {'passed' if passed else 'FAILED'}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:])))
