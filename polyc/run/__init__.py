"""Compiled models at work: calls, sessions, models in stages or completed by calls."""
