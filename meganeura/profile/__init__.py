"""Measuring a program: GPU clocks for each launch, the roofline, and traces for Perfetto."""
