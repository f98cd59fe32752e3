"""Weights from GGUF files, in the forms that graphs and ONNX models multiply by."""
