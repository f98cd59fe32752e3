"""Families of transformers with random weights, as PyTorch exports them; where that is installed.

Each is compiled for the sizes of one call, and once for all lengths of its text.
"""

import io

import pytest

import polyc
from polyc.options import Options
from polyc.run.cpu_model import CpuModel

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("onnxscript")

SMALL = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 64}  # fmt: skip
IMAGE = {**SMALL, "image_size": 32, "patch_size": 8}
DECODER = {"vocab_size": 99, "d_model": 32, "decoder_layers": 2, "decoder_attention_heads": 4,
           "decoder_ffn_dim": 64, "use_cache": False}  # fmt: skip


def bert():
    return transformers.BertModel(transformers.BertConfig(**SMALL))


def gpt2():
    config = transformers.GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=512,
                                     use_cache=False, bos_token_id=1, eos_token_id=2)  # fmt: skip
    return transformers.GPT2Model(config)


def llama():
    config = transformers.LlamaConfig(**SMALL, num_key_value_heads=2, use_cache=False)
    return transformers.LlamaModel(config)


def t5():
    config = transformers.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2,
                                   num_heads=4)  # fmt: skip
    return transformers.T5EncoderModel(config)


def whisper():
    config = transformers.WhisperConfig(
        **DECODER, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=64, pad_token_id=0,
        num_mel_bins=16, max_source_positions=50, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=1,
    )  # fmt: skip
    return transformers.WhisperModel(config)


def vit():
    return transformers.ViTModel(transformers.ViTConfig(**IMAGE))


def swin():
    config = transformers.SwinConfig(image_size=32, patch_size=2, embed_dim=16, depths=[2, 2],
                                     num_heads=[2, 4], window_size=4)  # fmt: skip
    return transformers.SwinModel(config)


def convnext():
    config = transformers.ConvNextConfig(hidden_sizes=[16, 32], depths=[1, 2], num_stages=2)
    return transformers.ConvNextModel(config)


def feeds_of(name, length):
    ids = torch.randint(0, 99, (1, length))
    match name:
        case "vit" | "swin" | "convnext":
            return {"pixel_values": torch.randn(1, 3, 32, 32)}
        case "whisper":
            return {"input_features": torch.randn(1, 16, 100), "decoder_input_ids": ids}
        case "bert":
            return {"input_ids": ids, "attention_mask": torch.ones(1, length, dtype=torch.long)}
    return {"input_ids": ids}


TEXT = [bert, gpt2, llama, t5, whisper]
FAMILIES = [*((f, d) for f in TEXT for d in (False, True)),
            *((f, False) for f in (vit, swin, convnext))]  # fmt: skip


each_family = pytest.mark.parametrize(
    ("family", "dynamic"), FAMILIES,
    ids=lambda v: v.__name__ if callable(v) else "dynamic" if v else "static",
)  # fmt: skip


@each_family
def test_a_family(family, dynamic, tmp_path):
    torch.manual_seed(0)
    module, name = family().eval(), family.__name__
    feeds, shapes = feeds_of(name, 12), None
    if dynamic:
        lengths = {1: torch.export.Dim("length", min=2, max=500)}
        shapes = {key: lengths if "feature" not in key else None for key in feeds}
    options = Options(cache_dir=tmp_path, threads=1)
    model = polyc.from_torch(module, (), feeds, dynamic_shapes=shapes, options=options)
    assert type(model.model) is CpuModel
    assert not model.model.explain().fallbacks
    for length in (12, 5, 64) if dynamic else (12,):
        feeds = feeds_of(name, length)
        with torch.no_grad():
            expected = module(**feeds)[0]
        torch.testing.assert_close(model(**feeds)[0], expected, rtol=1e-4, atol=1e-4)


class First(torch.nn.Module):
    """The first output of a module that takes its inputs by name."""

    def __init__(self, module, names):
        super().__init__()
        self.module, self.names = module, names

    def forward(self, *tensors):
        return self.module(**dict(zip(self.names, tensors, strict=True)))[0]


def masked_feeds(name, batch, length):
    """With a mask for text: without one transformers asks whether sequences are packed."""
    feeds = {k: torch.cat([v] * batch) for k, v in feeds_of(name, length).items()}
    key = {"whisper": "decoder_attention_mask"}.get(name, "attention_mask")
    is_text = any("ids" in k for k in feeds)
    return {**feeds, key: torch.ones(batch, length, dtype=torch.long)} if is_text else feeds


@pytest.mark.filterwarnings("ignore")
@each_family
def test_a_family_by_the_exporter_that_traces(family, dynamic, tmp_path):
    torch.manual_seed(0)
    module, name = family().eval(), family.__name__
    feeds, file = masked_feeds(name, 2, 12), io.BytesIO()
    sizes = {k: {0: "batch"} | ({} if "feature" in k else {1: "length"}) for k in feeds}
    torch.onnx.export(
        First(module, list(feeds)).eval(), tuple(feeds.values()), file, dynamo=False,
        input_names=list(feeds), output_names=["y"], dynamic_axes=sizes if dynamic else None,
        opset_version=17,
    )  # fmt: skip
    options = Options(cache_dir=tmp_path, threads=1)
    dims = {"length": (2, 500)} if dynamic else None
    model = polyc.compile(file.getvalue(), dims=dims, options=options)
    assert type(model) is CpuModel
    assert not model.explain().fallbacks
    for batch, length in ((2, 12), (1, 5), (3, 64)) if dynamic else ((2, 12),):
        feeds = masked_feeds(name, batch, length)
        with torch.no_grad():
            expected = module(**feeds)[0]
        y = model.run({k: v.numpy() for k, v in feeds.items()})["y"]
        torch.testing.assert_close(torch.from_numpy(y), expected, rtol=1e-4, atol=1e-4)


class Decoder(torch.nn.Module):
    """A causal model whose cache is tensors, given and returned."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, past):
        cache = transformers.DynamicCache(past)
        result = self.model(input_ids=input_ids, past_key_values=cache, use_cache=True)
        layers = result.past_key_values.layers
        return result.logits, [(layer.keys, layer.values) for layer in layers]


def causal(family):
    """(a decoder with an output layer, the shape of its cached keys and values without tokens)"""
    if family == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=512, bos_token_id=1,
            eos_token_id=2,
        )  # fmt: skip
        return transformers.GPT2LMHeadModel(config), (1, 4, 8)
    config = transformers.LlamaConfig(**SMALL, num_key_value_heads=2)
    return transformers.LlamaForCausalLM(config), (1, 2, 8)


def export_decoder(module, shape, layers, file):
    """The decoder as ONNX; the names of its states."""
    past = [tuple(torch.randn(*shape[:2], 7, shape[2]) for _ in range(2)) for _ in range(layers)]
    grows, tokens = {2: torch.export.Dim("past", min=2)}, {1: torch.export.Dim("tokens", min=2)}
    names = [f"{layer}.{kind}" for layer in range(layers) for kind in ("key", "value")]
    torch.onnx.export(
        module, (torch.randint(0, 99, (1, 3)), past), file, dynamo=True, verbose=False,
        dynamic_shapes={"input_ids": tokens, "past": [(grows, grows)] * layers},
        input_names=["input_ids", *(f"past.{name}" for name in names)],
        output_names=["logits", *(f"present.{name}" for name in names)],
    )  # fmt: skip
    return {f"past.{name}": f"present.{name}" for name in names}


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_decoder_goes_on_from_its_own_cache(family, tmp_path):
    torch.manual_seed(0)
    model, shape = causal(family)
    module = Decoder(model.eval())
    state = export_decoder(module, shape, 2, tmp_path / "decoder.onnx")
    compiled = polyc.compile(
        tmp_path / "decoder.onnx", options=Options(cache_dir=tmp_path, threads=1), state=state,
        dims={"past": (0, 64), "tokens": (1, 64)}, hint={"tokens": 1},
    )  # fmt: skip
    assert type(compiled) is CpuModel
    assert not compiled.explain().fallbacks
    assert all(s.in_place for s in compiled.states)
    session, cache = compiled.start(), transformers.DynamicCache()
    tokens = torch.randint(0, 99, (1, 11))
    for _ in range(21):
        with torch.no_grad():
            result = model(input_ids=tokens, past_key_values=cache, use_cache=True)
        cache = result.past_key_values
        logits = torch.from_numpy(session(tokens.numpy()))
        torch.testing.assert_close(logits, result.logits, rtol=1e-4, atol=1e-4)
        tokens = logits[:, -1:].argmax(-1)
    assert session.sizes == {"past": 31}
