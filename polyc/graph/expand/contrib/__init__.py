"""Operators of com.microsoft, in terms of the standard's."""
