"""Branches, loops and scans: chosen, counted, or kept as loops over steps."""
