"""What every solver stands on: cells, factors, spectra, kernels and threads."""
