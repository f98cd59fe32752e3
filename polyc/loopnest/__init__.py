"""Generated loops as plain data: the LoopNest, its indices, and what is known of them."""
