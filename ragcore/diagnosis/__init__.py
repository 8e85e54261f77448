"""From scored traces to causes: layers, first failures, attribution, isolation."""
