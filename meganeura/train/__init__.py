"""Training: optimisers, schedules, batches, the loop, its result, and checkpoints."""
