"""Tilewright: a compiler for Tenstorrent tile kernels. The language is ``from tilewright import ttl``."""
