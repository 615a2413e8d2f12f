"""Sinks: the contract in `base`, then one module per system."""
