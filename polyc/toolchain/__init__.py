"""Compilers of C and CUDA, and the cache of what they made."""
