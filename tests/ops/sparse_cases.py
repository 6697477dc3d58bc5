"""Expressions over sparse tensors, and the names in them; `torch` may be PyTorch or flambeau."""

EXPRESSIONS = """
s
c
sg
sg.coalesce()
sg.to_dense()
cl.values()
cl.clone()
c+c
c+e
c-e
c.add(e, alpha=3)
d+s
d-s
csr+d
s*2
cl*2
s*d
d*s
c*e
c*torch.tensor(2.)
cl/2
s/d
-s
-cl
cl.sin()
c.sqrt()
c.relu()
c.isnan()
c**2
torch.mm(cl,d.t())
torch.mm(d,c.t())
torch.sparse.mm(cl,d.t())
cl@d.t()
cl@d[0]
s@s.t()
torch.mm(c,c)
torch.sparse.mm(c,torch.ones(2,2))
torch.addmm(torch.ones(2,2),cl,d.t(),beta=2,alpha=3)
torch.sparse.addmm(torch.zeros(2,2),cl,d.t())
torch.sparse.sampled_addmm(csr,torch.ones(2,2),torch.ones(2,3))
csr
csr@d.t()
csr*2
csr+csr
csr*csr
csr.sin()
csr.to_dense()
csr.to_sparse()
csr.to_sparse_csc()
csr.to_sparse_bsr((1,3))
csr.t()
csr.transpose(0,1).layout
csr.sum()
csr.sum(1,keepdim=True)
csr[0]
csr[0,1]
csr.crow_indices(), csr.col_indices(), csr.values()
csc
bsr
bsr.to_dense()
bsr@torch.ones(4,1)
torch.arange(8.).reshape(2,2,2).add(1).to_sparse_csr()
torch.arange(8.).reshape(2,2,2).to_sparse_csr()
torch.arange(8.).reshape(2,2,2).add(1).to_sparse_csr().to_sparse()
torch.arange(8.).reshape(2,4).to_sparse_bsr((1,2)).to_sparse()
torch.arange(8.).reshape(2,4).to_sparse_bsr((1,3))
torch.arange(8.).reshape(2,4).to_sparse_csr(dense_dim=1)
cl.sum()
torch.sparse.sum(cl,0)
torch.sparse.sum(s,1)
torch.sparse.sum(s,[0,1])
torch.sparse.sum(hyb,1)
torch.sparse.sum(hyb,0)
torch.sparse.sum(c,3)
s.sum(0)
torch.sparse.softmax(cl,1)
torch.sparse.log_softmax(s,1)
cl.transpose(0,1)
cl.t()
s.permute(1,0)
hyb.transpose(0,1)
s[0]
s[0,2]
hyb[0]
hyb[1,0]
cl.select(0,1)
s.narrow_copy(0,0,1)
s.index_select(1,torch.tensor([2,0]))
s.unsqueeze(0)
s.unbind(0)
torch.cat([s,s])
torch.stack([s,s])
d.sparse_mask(c)
d.sparse_mask(s)
d.sparse_mask(csr)
d.sparse_mask(d)
c.sparse_mask(torch.sparse_coo_tensor([[0,1],[0,0]],[1.,1.],(2,3)))
dg.sparse_mask(c)
d.to_sparse(1)
d.to_sparse(3)
d.to_sparse(0)
dg.to_sparse()
dg.to_sparse(1)
dg.to_sparse(layout=torch.sparse_csr)
cl.to_sparse_csr()
cl.detach()
cl.double()
s.int()
s.bool()
s.values()
s.indices()
s._values(), s._indices()
s._nnz(), s.sparse_dim(), s.dense_dim(), s.is_coalesced(), hyb.dense_dim(), csr.sparse_dim()
s.is_sparse, s.layout, csr.is_sparse, csr.is_sparse_csr, s.stride(), s.is_contiguous(), len(s)
d.sparse_dim(), d.dense_dim()
csr.is_coalesced()
csr.indices()
s.crow_indices()
d.coalesce()
d.values()
d.crow_indices()
d.is_coalesced()
d._nnz()
s.numpy()
s.tolist()
s.item()
s.reshape(6)
s==s
s.exp()
s.max()
torch.zeros_like(s)
torch.zeros_like(csr)
s.clone().zero_()
c.clone().mul_(2)
c.clone().add_(c)
c.clone().sparse_resize_((3,3),2,0)
c.clone().sparse_resize_and_clear_((3,3),1,1)
torch.sparse.spdiags(torch.arange(6.).reshape(2,3),torch.tensor([0,1]),(3,3))
torch.sparse_coo_tensor(size=(2,2))
torch.sparse_coo_tensor([[0,1]],[1.,2.,3.])
torch.sparse_coo_tensor([[0.5,1]],[1.,2.])
torch.sparse_coo_tensor([0,1],[1.,2.],(3,))
torch.sparse_coo_tensor([[0,1]],[1.,2.],(3,4))
torch.sparse_coo_tensor([[0,-1]],[1.,2.])
torch.sparse_coo_tensor([[0,1]],[1,2],(3,),requires_grad=True)
torch.sparse_coo_tensor([[0,1]],[1.,2.],(3,),requires_grad=True)
torch.sparse_coo_tensor([[0,5]],[1.,2.],(3,),check_invariants=True)
torch.sparse_coo_tensor([[0,-1]],[1.,2.],(3,),check_invariants=True)
torch.sparse_coo_tensor([[0,0]],[1.,2.],(3,),check_invariants=True,is_coalesced=True)
torch.sparse_csr_tensor([0,1,2],[0,5],[1.,2.],(2,2),check_invariants=True)
torch.sparse_csr_tensor([1,1,2],[0,1],[1.,2.],(2,2),check_invariants=True)
torch.sparse_csr_tensor([0,1,3],[0,1],[1.,2.],(2,2),check_invariants=True)
torch.sparse_csr_tensor([0,2,2],[1,0],[1.,2.],(2,2),check_invariants=True)
torch.sparse_csr_tensor([0,2,2,2],[1,0],[1.,2.],(2,2),check_invariants=True)
torch.sparse_csr_tensor([0,1,2],[0,1],[1.,2.,3.],(2,2),check_invariants=True)
torch.sparse_csr_tensor([0,1,2],[0,1],[1.,2.],(2,),check_invariants=True)
torch.sparse_csc_tensor([0,1,3],[0,1],[1.,2.],(2,2),check_invariants=True)
torch.sparse_bsr_tensor([0,1,2],[0,1],[1.,2.],(2,2),check_invariants=True)
torch.sparse_csr_tensor([0,1,2],[0.,1.],[1.,2.])
torch.sparse_compressed_tensor([0,1,2],[0,1],[1.,2.],(2,2))
torch.sparse_compressed_tensor([0,1,2],[0,1],[1.,2.],(2,2),layout=torch.sparse_csc)
torch.tensor(3.).to_sparse()
torch.zeros(3,0).to_sparse()
torch.arange(2000.).to_sparse()
gradient(lambda a, b: torch.mm(a, b), c, d.t())
gradient(lambda a, b: torch.mm(a, b), d.t(), c)
gradient(torch.sparse.mm, c, d.t())
gradient(torch.sparse.mm, csr, d.t())
gradient(torch.sparse.mm, c, c.t().coalesce())
gradient(torch.mv, c, d[0])
gradient(torch.sum, c)
gradient(lambda x: torch.sparse.sum(x, 0), c)
gradient(lambda x: torch.sparse.softmax(x, 1), c)
gradient(lambda x: torch.sparse.log_softmax(x, 1), c)
gradient(torch.mul, c, d)
gradient(torch.mul, d, c)
gradient(torch.mul, c, c)
gradient(torch.add, c, c)
gradient(torch.add, d, c)
gradient(torch.sub, d, c)
gradient(torch.neg, c)
gradient(torch.relu, c)
gradient(lambda x: x ** 2, c)
gradient(lambda x: x / 2, c)
gradient(lambda x: x.to_dense(), c)
gradient(lambda x: x.to_dense(), csr)
gradient(lambda x: x.to_sparse_csr(), c)
gradient(lambda x: x.to_sparse_csr(), d)
gradient(lambda x: x.to_sparse(), d)
gradient(lambda x: x.values(), c)
gradient(lambda x: x.values(), csr)
gradient(lambda x: x.sparse_mask(c), d)
gradient(lambda v: torch.sparse_coo_tensor(i, v, (2, 3)).to_dense(), v)
gradient(lambda w: F.embedding(torch.tensor([1, 0, 1]), w, sparse=True), torch.ones(3, 2))
gradient(lambda w: F.embedding(torch.tensor([1, 0, 1]), w, padding_idx=0, sparse=True), torch.ones(3, 2))
gradient(lambda w: F.embedding_bag(torch.tensor([1, 0, 1]), w, torch.tensor([0, 2]), sparse=True), torch.ones(3, 2))[1]
gradient(lambda w: torch.gather(w, 1, torch.tensor([[0, 0]]), sparse_grad=True), torch.ones(2, 2))
""".strip().split("\n")


def names(torch):
    """What the expressions may name."""
    i, v = torch.tensor([[0, 1, 1, 0], [2, 0, 2, 2]]), torch.tensor([3.0, 4.0, 5.0, 6.0])
    s, d = torch.sparse_coo_tensor(i, v, (2, 3)), torch.arange(6.0).reshape(2, 3)
    c = s.coalesce()

    def gradient(function, *inputs):
        """The result, and gradients for weights of one."""
        leaves = [x.detach().clone().requires_grad_() for x in inputs]
        result = function(*leaves)
        weight = torch.ones(result.shape)
        if result.layout is not torch.strided:
            result = result.coalesce() if result.layout is torch.sparse_coo else result
            weight = weight.sparse_mask(result)
        return [result, *torch.autograd.grad(result, leaves, weight, allow_unused=True)]

    return {
        "torch": torch, "F": torch.nn.functional, "gradient": gradient, "i": i, "v": v, "s": s,
        "c": c, "d": d, "dg": d.clone().requires_grad_(), "cl": c.clone().requires_grad_(),
        "sg": torch.sparse_coo_tensor(i, v.clone().requires_grad_(), (2, 3)),
        "e": torch.sparse_coo_tensor([[0, 1], [1, 2]], [7.0, 8.0], (2, 3)).coalesce(),
        "csr": d.to_sparse_csr(), "csc": d.to_sparse_csc(),
        "bsr": torch.arange(16.0).reshape(4, 4).to_sparse_bsr((2, 2)),
        "hyb": torch.sparse_coo_tensor([[0, 1]], torch.ones(2, 2), (3, 2)),
    }


def outcome(torch, expression):
    """The text of the value, or the type and the beginning of the message of what is raised."""
    try:
        return repr(eval(expression, names(torch)))
    except Exception as error:
        text = str(error).split("\n")[0]
        return [type(error).__name__, text[:13 if text.startswith("Could not run") else 60]]
