"""Memory: which tensors share a buffer, by their lifetimes."""
