"""NumPy model of the arithmetic of one Tensix core, bit for bit; docs/numerics.md says what is exact."""
