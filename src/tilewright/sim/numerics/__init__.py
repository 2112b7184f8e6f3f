"""Bit-exact NumPy model of the arithmetic of one Tensix core; see docs/numerics.md for what is exact and what is bounded."""
