"""Running a model on a GPU: memory, streams, and arrays that other libraries share."""
