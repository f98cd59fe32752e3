"""Running: from a decorated function to a library, and calls of it."""
