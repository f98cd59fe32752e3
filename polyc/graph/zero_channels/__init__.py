"""Channels that constants of zero make needless: found, and left out."""
