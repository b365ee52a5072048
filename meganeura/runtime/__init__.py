"""The runtime: adapters, buffers, pipelines, and the recorded step."""
