"""Lowering: a kernel as statements with domains, accesses and their original order."""
