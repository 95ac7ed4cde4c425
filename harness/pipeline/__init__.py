"""One case through export, quantize and lower, and through the legs and probes."""
