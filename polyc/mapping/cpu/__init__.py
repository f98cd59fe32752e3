"""Strategies for CPUs, and what they decide together: vectors, tiles, layouts, packed copies."""
