"""Nodes that stand for several others, written out in terms of simpler operators."""
