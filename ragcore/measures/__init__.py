"""What is measured: the registry of names, and one module a layer."""
