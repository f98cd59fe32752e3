"""Reading: the text of a kernel as plain data, with types and sizes."""
