"""One module a family of formats: file -> columns that the kernels read, and back."""
