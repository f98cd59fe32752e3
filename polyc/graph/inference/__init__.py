"""Types, shapes and values of a whole graph, as far as they are known when compiling."""
