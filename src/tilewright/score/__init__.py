"""A verdict on a kernel nobody trusts: `sandbox` confines it, `candidate` turns it into data there, `judge` runs that data."""
