"""Scheduling: the order of launches, and which of them may run side by side."""
