"""A compiled model as a value: kernels, launches, the arena, and what its driver does."""
