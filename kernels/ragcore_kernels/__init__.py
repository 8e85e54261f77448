"""Kernels for retrieval evaluation over Arrow-layout buffers: numpy and numba, nothing else."""

__version__ = "0.1.0"
