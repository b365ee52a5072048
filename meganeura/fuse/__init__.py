"""Fusion: which nodes share a kernel, so that what lies between them never goes through memory."""
