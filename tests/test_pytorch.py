"""PyTorch's modules, by export and by torch.compile; where PyTorch is installed."""

import numpy as np
import pytest

import polyc
from polyc.errors import ShapeError, UnsupportedOp
from polyc.options import Options
from tests.sampling import thorough

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
backend = pytest.importorskip("polyc.pytorch").backend
decompositions = pytest.importorskip("polyc.run.torch_decompositions")
attend, encode = decompositions.attend, decompositions.encode


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = torch.nn.Linear(16, 24), torch.nn.BatchNorm1d(24)
        self.last = torch.nn.Linear(24, 8)
        self.norm.running_mean.normal_()

    def forward(self, x):
        h = torch.relu(self.norm(self.first(x)))
        return {"logits": self.last(h), "hidden": h}


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net().eval()


@pytest.fixture
def options(tmp_path):
    return Options(cache_dir=tmp_path, threads=1)


def check_same(got, want):
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got.float().numpy(), want.float().detach().numpy(), 1e-4, 1e-5)


def test_a_module(net, options):
    x = torch.randn(5, 16)
    model = polyc.from_torch(net, (x,), options=options)
    got, want = model(x), net(x)
    assert got.keys() == want.keys()
    for name in want:
        check_same(got[name], want[name])
    assert not model.model.explain().fallbacks
    with pytest.raises(ShapeError):
        model(torch.randn(6, 16))


def test_sizes_that_are_left_open(net, options):
    rows = ({0: torch.export.Dim("rows", max=512)},)
    model = polyc.from_torch(net, (torch.randn(5, 16),), dynamic_shapes=rows, options=options)
    for n in (2, 5, 33):
        x = torch.randn(n, 16)
        check_same(model(x)["logits"], net(x)["logits"])


def test_bfloat16_and_strided_tensors(options):
    net = torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.Tanh()).bfloat16()
    x = torch.randn(32, 4, dtype=torch.bfloat16).T
    got = polyc.from_torch(net, (x,), options=options)(x)
    assert got.dtype == torch.bfloat16
    torch.testing.assert_close(got, net(x), rtol=0.02, atol=0.02)


def test_a_module_that_cannot_be_exported(options):
    class Decides(torch.nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(UnsupportedOp, match="Decides: PyTorch cannot export it"):
        polyc.from_torch(Decides(), (torch.ones(3),), options=options)


@pytest.fixture
def count(monkeypatch):
    """How many models have been compiled so far, stages and completions counted."""
    made = []
    whole = polyc.api._compile
    monkeypatch.setattr(polyc.api, "_compile", lambda *a: made.append(1) or whole(*a))
    return lambda: len(made)


@pytest.mark.parametrize("dynamic", [False, thorough(True)])
def test_torch_compile(net, options, dynamic):
    torch._dynamo.reset()
    fast = torch.compile(net, backend=backend, dynamic=dynamic, options={"options": options})
    with torch.no_grad():
        for n in (5, 9):
            x = torch.randn(n, 16)
            check_same(fast(x)["logits"], net(x)["logits"])


def test_torch_compile_breaks_its_graph(options):
    """What depends on data stays PyTorch's; the graphs before and after are polyc's."""

    def steps(x):
        y = torch.exp(x)
        return y * 2 if y.sum() > 1e6 else torch.tanh(y)

    torch._dynamo.reset()
    x = torch.randn(7, 3)
    fast = torch.compile(steps, backend=backend, options={"options": options})
    check_same(fast(x), steps(x))


class Attends(torch.nn.Module):
    """A transformer's block with what exports of these hold: sizes in views, and masks of sizes."""

    def __init__(self):
        super().__init__()
        self.inner, self.out = torch.nn.Linear(32, 96), torch.nn.Linear(32, 32)
        self.place = torch.nn.Embedding(512, 32)

    def forward(self, x):
        n, length, width = x.shape
        x = x + self.place(torch.arange(length))
        q, k, v = (t.view(n, length, 4, 8).transpose(1, 2) for t in self.inner(x).chunk(3, -1))
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        scores = (q @ k.transpose(-1, -2) / 8**0.5).masked_fill(hidden, float("-inf"))
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, length, width)
        return torch.relu(self.out(mixed)) + x


def encoder(**choices):
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, **choices)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


@pytest.mark.parametrize("make", [thorough(Attends), encoder], ids=["attends", "encoder"])
def test_open_sizes_are_compiled_once(make, options, count):
    torch._dynamo.reset()
    torch.manual_seed(1)
    net = make().eval()
    fast = torch.compile(net, backend=backend, dynamic=True, options={"options": options})
    with torch.no_grad():
        for n, length in ((2, 5), (3, 17), (2, 64), (7, 500)):
            x = torch.randn(n, length, 32)
            check_same(fast(x), net(x))
            assert count() == 1


@pytest.mark.thorough
def test_a_size_that_is_found_to_be_one_number_is_compiled_for_each(options, count):
    """A buffer of 8 rows lets the exporter find that there are always 8."""

    class Fits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("rows", torch.randn(8, 4))

        def forward(self, x):
            return x[:, : min(x.shape[1], 8)].reshape(x.shape[0], -1) * 2

    torch._dynamo.reset()
    net = Fits().eval()
    fast = torch.compile(net, backend=backend, dynamic=True, options={"options": options})
    with torch.no_grad():
        for n, m in ((3, 5), (4, 6), (2, 9), (5, 11)):
            x = torch.randn(n, m)
            check_same(fast(x), net(x))


ATTEND = torch.ops.aten._native_multi_head_attention.default
ENCODE = torch.ops.aten._transformer_encoder_layer_fwd.default


def masks():
    """No mask; [queries, keys]; [batch, keys]; [batch, heads, queries, keys]; and one of floats."""
    yield None, None
    yield torch.ones(5, 5).triu(1).bool(), 0
    yield torch.tensor([[0, 0, 0, 0, 0], [0, 0, 0, 1, 1]]).bool(), 1
    yield torch.rand(2, 4, 5, 5) > 0.8, 2
    yield torch.full((5, 5), float("-inf")).triu(1), 0


@pytest.mark.parametrize(("mask", "kind"), list(masks()))
def test_a_fused_attention_is_what_it_fuses(mask, kind):
    attention = encoder().layers[0].self_attn
    weights = (attention.in_proj_weight, attention.in_proj_bias)
    weights += (attention.out_proj.weight, attention.out_proj.bias)
    q, k, v = torch.randn(3, 2, 5, 32)
    for average in (False, True):
        with torch.no_grad():
            arguments = (q, k, v, 32, 4, *weights, mask, True, average, kind)
            want, got = ATTEND(*arguments), attend(*arguments)
        for one, other in zip(got, want, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize(("mask", "kind"), list(masks()))
@pytest.mark.parametrize("gelu", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_a_fused_layer_is_what_it_fuses(mask, kind, gelu, first):
    one = encoder().layers[0]
    weights = (one.self_attn.in_proj_weight, one.self_attn.in_proj_bias)
    weights += (one.self_attn.out_proj.weight, one.self_attn.out_proj.bias)
    norms = (one.norm1.weight, torch.randn(32), one.norm2.weight, torch.randn(32))
    feeds = (one.linear1.weight, one.linear1.bias, one.linear2.weight, one.linear2.bias)
    x = torch.randn(2, 5, 32)
    with torch.no_grad():
        arguments = (x, 32, 4, *weights, gelu, first, 1e-5, *norms, *feeds, mask, kind)
        want, got = ENCODE(*arguments), encode(*arguments)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5, equal_nan=True)


def test_a_graph_that_trains_is_refused(options):
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
    torch._dynamo.reset()
    fast = torch.compile(net, backend=backend, options={"options": options})
    with pytest.raises(Exception, match=r"the graph trains: .* call module.eval\(\) first"):
        fast(torch.randn(3, 4))


def test_gradients_are_refused_where_they_are_asked_for(options):
    torch._dynamo.reset()
    net = torch.nn.Linear(4, 2).eval()
    fast = torch.compile(net, backend=backend, options={"options": options})
    x = torch.randn(3, 4)
    y = fast(x)
    check_same(y.detach(), net(x))
    with pytest.raises(RuntimeError, match="compiled by polyc, for inference: it has no gradients"):
        y.sum().backward()


def test_what_the_exporter_does_not_know_stays_pytorch_s(options):
    class Splits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)

        def forward(self, x):
            h = torch.relu(self.first(x))
            values = torch.linalg.svd(h @ h.transpose(-1, -2))[1]
            return self.last(h) * torch.tanh(values)[:, None], h.sum(-1)

    torch._dynamo.reset()
    net = Splits().eval()
    fast = torch.compile(net, backend=backend, options={"options": options})
    with torch.no_grad():
        x = torch.randn(5, 4)
        with pytest.warns(UserWarning, match="polyc leaves aten._linalg_svd.default to PyTorch"):
            got = fast(x)
        for one, other in zip(got, net(x), strict=True):
            check_same(one, other)
        for one, other in zip(fast(2 * x), net(2 * x), strict=True):
            check_same(one, other)
