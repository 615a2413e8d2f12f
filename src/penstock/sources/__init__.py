"""Sources: the contract in `base`, then one module per system, found by URI scheme in `registry`."""
