"""How threads share a kernel: who does what, and where all wait."""
