"""Code generation: regions and tiles become WGSL, linked from readable skeletons and generated
hooks.
"""
