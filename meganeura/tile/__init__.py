"""Tiles: how much of a region one workgroup and one invocation compute."""
