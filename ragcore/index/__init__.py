"""The index directory: chunks, postings over tantivy, vectors, a graph for approximate search."""
