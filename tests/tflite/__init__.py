"""TFLite networks on the Ethos-U model, against TFLite's reference kernels."""
