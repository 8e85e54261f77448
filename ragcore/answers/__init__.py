"""What can be said of an answer by reading it: matches, facts, citation markers, suites' rules."""
