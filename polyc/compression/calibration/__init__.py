"""What samples say of tensors: their ranges, and scales that fit these."""
