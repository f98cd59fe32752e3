"""Contractions on a CPU: the tile that registers hold, what it costs, the order of the tiles."""
