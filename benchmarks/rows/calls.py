"""Single calls of every kind, with shapes and types of all sorts.

A line is `name: code | a=…; b=…`: what is timed, and how its operands are made. R and N make random
numbers, uniform and normal, I(n, shape) whole ones, P and Q leaves that require gradients (uniform,
normal), and S symmetric matrices.
"""

from .registry import ROWS

TABLES = {
    "pointwise": """
a+b @2^15 f32: a+b | a=R(32768); b=R(32768)
a+b @2^20 f32: a+b | a=R(1<<20); b=R(1<<20)
a*b f16: a*b | a=R(1<<19).half(); b=R(1<<19).half()
a*2.5: a*2.5 | a=R(1<<19)
a//3 i64: a//3 | a=I(1000,(1<<18,))
a**3: a**3 | a=R(1<<19)
col bcast add: a+v | a=R(1000,700); v=R(1000,1)
slice bcast mul: a*v | a=R(16,64,32,32); v=R(1,64,1,1)
outer: torch.outer(a,b) | a=R(900); b=R(1000)
strided cols: a[:,::2]+b[:,::2] | a=R(800,1200); b=R(800,1200)
permuted mul: a.permute(0,2,3,1)*v | a=R(8,64,40,40); v=R(64)
permuted+contig: a.permute(0,2,1)+b | a=R(32,200,150); b=R(32,150,200)
nchw last add: a.to(memory_format=torch.channels_last)+a | a=R(8,64,40,40)
strided add_: a[:,::2].add_(1.0) | a=R(800,1200)
add_ alpha: a.add_(b,alpha=1e-6) | a=R(1<<19); b=R(1<<19)
add alpha: a.add(b,alpha=0.5) | a=R(1<<19); b=R(1<<19)
mul_: a.mul_(1.0) | a=R(1<<19)
aten add: torch.ops.aten.add(a,b) | a=R(3); b=R(3)
aten overload: torch.ops.aten.sum.dim_IntList(a,[0]) | a=R(3)
lerp_: a.lerp_(b,0.1) | a=R(1<<19); b=R(1<<19)
clamp_: a.clamp_(0.1,0.9) | a=R(1<<19)
clamp tensors: a.clamp(b,b+1) | a=R(1<<18); b=R(1<<18)
addcmul_: a.addcmul_(b,b,value=1e-6) | a=R(1<<19); b=R(1<<19)
addcdiv_: a.addcdiv_(b,b+1,value=1e-6) | a=R(1<<19); b=R(1<<19)
zero_: a.zero_() | a=R(1<<19)
fill_: a.fill_(2.0) | a=R(1<<19)
sigmoid_: a.sigmoid_() | a=R(1<<19)
silu bf16: F.silu(a) | a=R(1<<19).bfloat16()
exp: a.exp() | a=N(1<<19)
lgamma: a.lgamma() | a=R(1<<17)+1
sigmoid: a.sigmoid() | a=N(1<<19)
silu: F.silu(a) | a=N(1<<19)
gelu: F.gelu(a) | a=N(1<<19)
hardtanh: F.hardtanh(a) | a=N(1<<19)
prelu: F.prelu(a,w) | a=N(16,64,32,32); w=R(64)
nan_to_num: a.nan_to_num() | a=N(1<<19)
where bcast: torch.where(m,a,v) | a=N(800,800); m=N(800,1)>0; v=N(800)
tril_: a.tril_() | a=N(800,800)
eq i64: a==b | a=I(9,(1<<19,)); b=I(9,(1<<19,))
not: ~a | a=N(1<<19)>0
f32>f16: a.half() | a=R(1<<19)
f16>f32: a.float() | a=R(1<<19).half()
contiguous heads: a.transpose(1,2).contiguous() | a=R(8,128,8,64)
linspace: torch.linspace(0,1,1<<19) |
ones: torch.ones(1<<20) |
full: torch.full((1<<19,),3) |
multinomial rows: torch.multinomial(a,1) | a=R(512,1000)
multinomial again: torch.multinomial(a,20,True) | a=R(64,300)
""",
    "reductions": """
sum bf16 d1: a.sum(1) | a=R(700,700).bfloat16()
sum d1: a.sum(1) | a=R(64,100,96)
sum d2: a.sum(2) | a=R(64,100,96)
sum d1 f64: a.sum(1) | a=R(64,100,96).double()
sum d2 f64: a.sum(2) | a=R(64,100,96).double()
sum d0 i64: a.sum(0) | a=I(9,(64,100,96))
sum d1 i64: a.sum(1) | a=I(9,(64,100,96))
sum d2 i64: a.sum(2) | a=I(9,(64,100,96))
sum d2 small: a.sum(2) | a=R(2000,50,4)
sum d1 small: a.sum(1) | a=R(2000,4,50)
sum d1 tiny tail: a.sum(1) | a=R(500,300,3)
sum (2,3): a.sum((2,3)) | a=R(16,64,28,28)
mean (2,3): a.mean((2,3)) | a=R(16,64,28,28)
mean (0,1): a.mean((0,1)) | a=R(16,64,28,28)
mean (1,3): a.mean((1,3)) | a=R(16,64,28,28)
mean -1: a.mean(-1) | a=R(512,768)
mean d1 7x7: a.mean((2,3)) | a=R(32,512,7,7)
sum transposed: a.t().sum(0) | a=R(800,800)
sum strided: a[:,::2].sum(1) | a=R(800,1200)
sum strided all: a[:,::2].sum() | a=R(800,1200)
sum crop: a[:,3:-3].sum() | a=R(800,800)
prod: a.prod() | a=R(1<<19)
prod d1: a.prod(1) | a=R(700,700)
prod d0: a.prod(0) | a=R(700,700)
norm 3 d1: torch.linalg.vector_norm(a,3,1) | a=R(500,500)
normalize: F.normalize(a,dim=1) | a=R(1000,512)
aminmax: a.aminmax() | a=R(1<<19)
argmin d1 small: a.argmin(1) | a=R(50000,10)
cumsum d0: a.cumsum(0) | a=R(700,700)
""",
    "places": """
cat 300 small d1: torch.cat(l,1) | l=[R(64,20) for _ in range(300)]
gather one: a.gather(1,i[:,None]) | a=R(4096,100); i=I(100,(4096,))
scatter_ value: torch.zeros(4096,100).scatter_(1,i,1.0) | i=I(100,(4096,1))
scatter_add d1: torch.zeros(512,1000).scatter_add_(1,i,b) | i=I(1000,(512,300)); b=R(512,300)
scatter_reduce amax: torch.zeros(1000,64).scatter_reduce(0,i,b,'amax') |\
  i=I(1000,(5000,1)).expand(5000,64); b=R(5000,64)
scatter_reduce mean: torch.zeros(1000).scatter_reduce(0,i,b,'mean') | i=I(1000,(50000,)); b=R(50000)
index_add_ d1: a.index_add_(1,i,b) | a=torch.zeros(128,500); i=I(500,(1000,)); b=R(128,1000)
index_put_ acc: a.index_put_((i,j),b,accumulate=True) |\
  a=R(500,500); i=I(500,(50000,)); j=I(500,(50000,)); b=R(50000)
index_fill_: a.index_fill_(1,i,0.) | a=R(1000,500); i=torch.randperm(500)[:100]
put_: a.put_(i,b) | a=R(100000); i=torch.randperm(100000)[:50000]; b=R(50000)
mask 2d: a[m] | a=R(700,700); m=R(700,700)>.9
mask sparse: a[m] | a=R(1<<19); m=R(1<<19)>.99
masked_select: a.masked_select(m) | a=R(500,500); m=R(500,500)>.5
nonzero: m.nonzero() | m=R(700,700)>.5
nonzero sparse: m.nonzero() | m=R(700,700)>.99
searchsorted: torch.searchsorted(s,a) | s=torch.sort(R(10000))[0]; a=R(100000)
unique: a.unique() | a=I(1000,(100000,))
unique inverse: a.unique(return_inverse=True,return_counts=True) | a=I(1000,(100000,))
unique_consecutive: a.unique_consecutive() | a=torch.sort(I(1000,(100000,)))[0]
sort 1d: a.sort() | a=R(100000)
topk rows: a.topk(10,1) | a=R(300,1000)
pad reflect: F.pad(a,(2,2,2,2),'reflect') | a=R(16,32,32,32)
pad replicate: F.pad(a,(2,2,2,2),'replicate') | a=R(16,32,32,32)
pad circular: F.pad(a,(2,2),'circular') | a=R(64,32,100)
repeat_interleave d1: a.repeat_interleave(4,1) | a=R(500,64)
unfold tensor: a.unfold(1,16,8).contiguous() | a=R(64,2000)
trace many: a.diagonal(dim1=1,dim2=2).sum(-1) | a=R(1000,16,16)
kron: torch.kron(a,b) | a=R(30,30); b=R(30,30)
""",
    "layers": """
embedding_bag sum: F.embedding_bag(i,w,o,mode='sum') |\
  i=I(5000,(6400,)); w=R(5000,64); o=torch.arange(0,6400,50)
embedding_bag mean 2d: F.embedding_bag(i,w) | i=I(5000,(256,20)); w=R(5000,64)
embedding_bag max: F.embedding_bag(i,w,mode='max') | i=I(5000,(256,20)); w=R(5000,64)
embedding_bag weights: F.embedding_bag(i,w,per_sample_weights=p,mode='sum') |\
  i=I(5000,(256,20)); w=R(5000,64); p=R(256,20)
ce pixels bwd: F.cross_entropy(a,t).backward() | a=Q(4,21,96,96); t=I(21,(4,96,96))
nll pixels: F.nll_loss(a,t) | a=N(4,21,96,96).log_softmax(1); t=I(21,(4,96,96))
ce smooth: F.cross_entropy(a,t,label_smoothing=0.1) | a=N(256,100); t=I(100,(256,))
embedding_bag bwd: F.embedding_bag(i,w,mode='sum').sum().backward() |\
  i=I(2000,(128,10)); w=Q(2000,32)
bce logits posw: F.binary_cross_entropy_with_logits(a,t,pos_weight=w) |\
  a=N(512,500); t=R(512,500); w=R(500)
softmax d1: a.softmax(1) | a=N(512,1000)
softmax bf16: a.softmax(-1) | a=N(512,1000).bfloat16()
cdist: torch.cdist(a,b) | a=R(500,3); b=R(700,3)
pdist: F.pdist(a) | a=R(300,16)
group_norm: F.group_norm(a,8,w,b) | a=R(16,64,28,28); w=R(64); b=R(64)
layer_norm: F.layer_norm(a,(768,),w,b) | a=R(512,768); w=R(768); b=R(768)
batch_norm eval: F.batch_norm(a,m,v,w,b) | a=R(16,64,28,28); m=R(64); v=R(64); w=R(64); b=R(64)
sdpa bias: F.scaled_dot_product_attention(q,q,q,attn_mask=m) | q=N(4,8,128,64); m=N(128,128)
sdpa one query: F.scaled_dot_product_attention(q,k,k) | q=N(8,8,1,64); k=N(8,8,256,64)
sdpa one query, alone: F.scaled_dot_product_attention(q,k,k) | q=N(1,4,1,32); k=N(1,4,50,32)
sdpa causal bwd: F.scaled_dot_product_attention(q,q,q,is_causal=True).sum().backward() |\
  q=Q(4,4,128,32)
mha: M(x,x,x)[0] | M=torch.nn.MultiheadAttention(128,8,batch_first=True); x=N(8,64,128)
conv 3x3: F.conv2d(x,w,b,padding=1) | x=N(8,32,32,32); w=N(64,32,3,3); b=N(64)
conv grouped: F.conv2d(x,w,padding=1,groups=4) | x=N(8,64,28,28); w=N(64,16,3,3)
conv depthwise 7: F.conv2d(x,w,padding=3,groups=96) | x=N(2,96,28,28); w=N(96,1,7,7)
conv depthwise s2 bwd: F.conv2d(x,w,padding=1,stride=2,groups=96).sum().backward() |\
  x=Q(4,96,28,28); w=Q(96,1,3,3)
conv depthwise 5: F.conv2d(x,w,padding=2,groups=72) | x=N(4,72,28,28); w=N(72,1,5,5)
conv depthwise line: F.conv1d(x,w,padding=3,groups=64) | x=N(8,64,128); w=N(64,1,4)
conv 3x3 small images: F.conv2d(x,w,padding=1) | x=N(4,256,7,7); w=N(256,256,3,3)
conv 3x3 bwd: F.conv2d(x,w,padding=1).sum().backward() | x=Q(4,64,28,28); w=Q(64,64,3,3)
conv1d: F.conv1d(x,w,padding=1) | x=N(16,64,200); w=N(64,64,3)
conv3d s2: F.conv3d(x,w,padding=1,stride=2) | x=N(2,16,16,16,16); w=N(32,16,3,3,3)
conv transposed: F.conv_transpose2d(x,w,stride=2,padding=1) | x=N(8,64,14,14); w=N(64,32,4,4)
conv transposed points: F.conv_transpose2d(x,w) | x=N(16,64,1,1); w=N(64,64,4,4)
conv bf16: F.conv2d(x,w,padding=1) | x=N(4,16,28,28).bfloat16(); w=N(32,16,3,3).bfloat16()
maxpool1d: F.max_pool1d(x,2) | x=N(16,64,400)
adaptive avg 1: F.adaptive_avg_pool2d(x,1) | x=N(16,256,14,14)
adaptive avg 7: F.adaptive_avg_pool2d(x,7) | x=N(8,128,20,20)
interp area: F.interpolate(x,size=(16,16),mode='area') | x=R(8,16,64,64)
maxpool1d overlapping: F.max_pool1d(x,3,2,1) | x=N(16,64,400)
maxpool1d of all: F.max_pool1d(x,58) | x=N(32,32,58)
maxpool2d bwd: F.max_pool2d(x,2).sum().backward() | x=Q(8,32,56,56)
avgpool2d: F.avg_pool2d(x,3,1,1) | x=N(8,32,28,28)
grid_sample: F.grid_sample(x,g,align_corners=False) | x=N(4,16,32,32); g=R(4,32,32,2)*2-1
grid_sample border: F.grid_sample(x,g,padding_mode='border',align_corners=True) |\
  x=N(4,3,64,64); g=R(4,64,64,2)*2.4-1.2
grid_sample far: F.grid_sample(x,g,align_corners=False) | x=N(4,8,12,13,14); g=R(4,12,11,10,3)*8-4
grid_sample bicubic: F.grid_sample(x,g,'bicubic',align_corners=True) |\
  x=N(2,8,32,32); g=R(2,32,32,2)*2-1
grid_sample bwd: F.grid_sample(x,g,align_corners=False).sum().backward() |\
  x=Q(4,16,32,32); g=P(4,32,32,2)
bicubic up: F.interpolate(x,scale_factor=2,mode='bicubic') | x=N(2,3,64,64)
bilinear up bwd: F.interpolate(x,scale_factor=2,mode='bilinear').sum().backward() | x=Q(4,16,32,32)
dropout2d: F.dropout2d(x,0.1,True) | x=N(16,64,28,28)
linear thin: F.linear(x,w,b) | x=N(32,784); w=N(256,784); b=N(256)
linear one row: F.linear(x,w,b) | x=N(1,1024); w=N(1024,1024); b=N(1024)
linear bf16: F.linear(x,w) | x=N(64,512).bfloat16(); w=N(512,512).bfloat16()
""",
    "products": """
mm bf16: a@b | a=N(256,256).bfloat16(); b=N(256,256).bfloat16()
bmm 16: a@b | a=N(500,16,16); b=N(500,16,16)
bmm heads: q@k.transpose(-1,-2) | q=N(8,8,64,32); k=N(8,8,64,32)
bmm mv: a@v | a=N(1000,16,16); v=N(1000,16,1)
bmm f64: a@b | a=N(200,16,16).double(); b=N(200,16,16).double()
einsum heads: torch.einsum('bqhd,bkhd->bhqk',a,b) | a=N(8,64,8,32); b=N(8,64,8,32)
einsum outer: torch.einsum('i,j->ij',a,b) | a=N(500); b=N(600)
einsum sum: torch.einsum('ijk->j',a) | a=N(64,64,64)
einsum dotrows: torch.einsum('bi,bi->b',a,b) | a=N(2000,128); b=N(2000,128)
einsum three: torch.einsum('bi,ij,bj->b',a,w,b) | a=N(256,64); w=N(64,64); b=N(256,64)
einsum bilinear: torch.einsum('bi,oij,bj->bo',a,w,b) | a=N(64,32); w=N(16,32,32); b=N(64,32)
einsum ssm: torch.einsum('bldn,bln->bld',a,b) | a=N(4,64,64,16); b=N(4,64,16)
vecdot: torch.linalg.vecdot(a,b) | a=N(2000,128); b=N(2000,128)
""",
    "matrices": """
solve batch: torch.linalg.solve(a,b) | a=N(256,8,8)+9*torch.eye(8); b=N(256,8,2)
solve 512: torch.linalg.solve(a,b) | a=N(512,512)+99*torch.eye(512); b=N(512,8)
inv batch 3: torch.linalg.inv(a) | a=N(1000,3,3)+9*torch.eye(3)
det batch: torch.linalg.det(a) | a=N(500,4,4)
slogdet batch: torch.linalg.slogdet(a) | a=N(200,16,16)
qr 128: torch.linalg.qr(a) | a=N(128,128)
qr 300x50: torch.linalg.qr(a) | a=N(300,50)
eigh 100: torch.linalg.eigh(a) | a=S(100,100)
eig 64: torch.linalg.eig(a) | a=N(64,64)
svd 100: torch.linalg.svd(a,full_matrices=False) | a=N(100,100)
svd thin: torch.linalg.svd(a,full_matrices=False) | a=N(500,32)
pinv: torch.linalg.pinv(a) | a=N(64,32)
lstsq: torch.linalg.lstsq(a,b).solution | a=N(200,20); b=N(200,3)
""",
    "Fourier": """
fft 1021: torch.fft.fft(x) | x=N(32,1021)+0j
rfft: torch.fft.rfft(x) | x=N(128,2048)
stft: torch.stft(x,512,128,window=w,return_complex=True) | x=N(4,16000); w=torch.hann_window(512)
""",
    "gradients": """
sigmoid bwd: x.sigmoid().sum().backward() | x=Q(512,1024)
""",
}


def _makers(torch):
    def leaf(make):
        return lambda *shape: make(*shape, requires_grad=True)

    def symmetric(*shape):
        a = torch.randn(*shape)
        return a + a.mT

    return {"torch": torch, "F": torch.nn.functional, "R": torch.rand, "N": torch.randn,
            "I": torch.randint, "P": leaf(torch.rand), "Q": leaf(torch.randn), "S": symmetric}


def _row(code, operands):
    compiled = compile(code, code, "eval")

    def prepare(torch):
        names = _makers(torch)
        for operand in filter(None, operands.split("; ")):
            name, source = operand.split("=", 1)
            names[name] = eval(source, names)
        return lambda: eval(compiled, names)

    return prepare


for _group, _table in TABLES.items():
    for _line in _table.strip().splitlines():
        _head, _, _operands = _line.rpartition("|")
        _name, _, _code = _head.partition(": ")
        ROWS[f"{_group}: {_name}"] = _row(_code.strip(), _operands.strip())
