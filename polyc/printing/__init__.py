"""LoopNest -> text of C, and what text for CPUs and for GPUs has in common."""
