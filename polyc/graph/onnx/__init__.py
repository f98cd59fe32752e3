"""ONNX messages to plain Python and back, under checks."""
