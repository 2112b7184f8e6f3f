"""The tuner: which values of a kernel's parameters are fastest, by the compiler's own prediction or on a device."""
