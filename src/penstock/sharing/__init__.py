"""Plans over grouping keys: the packed layout, the plan, and its explanation. No pyspark, no numba."""
