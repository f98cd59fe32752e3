"""How one cluster runs on a CPU: by rows, by columns, in tiles, in blocks, where data picks."""
