"""Operators of ai.onnx.ml: what classifiers, regressors and encoders consist of."""
