"""What users touch: the Python API (`api`) and the command line (`cli`). Wires components; no logic of its own."""
