"""Factors of sums of products in the types of which one instruction multiplies several."""
