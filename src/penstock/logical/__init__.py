"""Logical queries: types, expressions, streams and queries, and their resolution from parsed text.

Imports nothing of pyspark, numba or Arrow: planning must run anywhere, in milliseconds.
"""
