"""Element types, sizes and specifications of tensors."""
