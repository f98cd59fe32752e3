"""Models as text, compiled and compared with onnx's reference evaluator or ONNX Runtime."""

import numpy as np
from onnx import parser
from onnx.reference import ReferenceEvaluator

import polyc
from polyc.options import Options


def model_of(text, opset=21, **domains):
    """The model of a graph in ONNX's textual form."""
    imports = "".join(f', "{domain}": {version}' for domain, version in domains.items())
    return parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}{imports}]> {text}')


def compile_in(folder):
    """A compile function that keeps its cache in a folder."""
    options = Options(cache_dir=folder, threads=1)
    return lambda model, **more: polyc.compile(model, target="baseline", options=options, **more)


def assert_same(got, want, rtol=1e-5, atol=1e-6):
    """Equal structures, shapes and types; floats but for rounding."""
    if want is None or isinstance(want, list):
        assert (got is None) == (want is None)
        for g, w in zip(got or [], want or [], strict=True):
            assert_same(g, w, rtol, atol)
    elif want.dtype == object:
        assert got.tolist() == want.tolist()
    else:
        assert got.dtype == want.dtype
        largest = np.abs(want[np.isfinite(want)]).max(initial=1) if want.dtype.kind == "f" else 1
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol * largest)


def assert_as_reference(compiled, source, tolerance=1e-5, **feeds):
    """The same results as the reference evaluator's; the compiled model is returned."""
    model = compiled(source)
    got = model.run(feeds)
    with np.errstate(all="ignore"):
        expected = ReferenceEvaluator(source).run(None, feeds)
    for output, want in zip(source.graph.output, expected, strict=True):
        assert_same(got[output.name], want, tolerance, tolerance / 10)
    return model


def run_ort(source, feeds):
    """What ONNX Runtime gives."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1  # with more, what each takes of a batch is quantised by itself
    session = onnxruntime.InferenceSession(
        source.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)
