"""Rate limits that all runs with the same key at the same endpoint share: who may call it, and when."""
