"""The intermediate representation: data types, operations, hash-consed nodes, graphs, and their
NumPy meaning.
"""
