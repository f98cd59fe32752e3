"""What clusters on a CPU decide together: vectors, layouts, packed copies, tiles that are fused.

How one of them runs is in `strategies`, and what its tile in registers costs in `contraction`.
"""
