"""Scheduling: the order in which instances are executed, and where locals live."""
