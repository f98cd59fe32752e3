"""Models made smaller: quantised, pruned, and written as ONNX again; README.md says how."""
