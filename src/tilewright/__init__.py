"""Tilewright: a compiler for Tenstorrent tile kernels. The language is ``from tilewright import ttl``."""

from tilewright.package import load as load
