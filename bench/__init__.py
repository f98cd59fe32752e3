"""Measuring polyc beside others; nothing here is imported by polyc. See README.md."""
