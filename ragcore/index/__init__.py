"""Indexes: words through tantivy, vectors exact or by HNSW, and what makes vectors of texts."""
