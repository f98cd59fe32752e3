"""Operators on images and boxes: warped grids, bent windows, regions, columns."""
