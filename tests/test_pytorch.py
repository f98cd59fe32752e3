"""PyTorch's modules, by export and by torch.compile; where PyTorch is installed."""

import numpy as np
import pytest

import polyc
from polyc.errors import ShapeError, UnsupportedOp
from polyc.options import Options

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
backend = pytest.importorskip("polyc.pytorch").backend


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


@pytest.mark.parametrize("dynamic", [False, True])
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
