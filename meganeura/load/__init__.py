"""Readers of weights and models that come as files."""
