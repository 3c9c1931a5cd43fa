"""The modules of a course assignment over graphrun: ndarray, gpu_op and autodiff (README.md)."""
