"""Kernels that many programs need, with parameters that are tuned for both chips."""
