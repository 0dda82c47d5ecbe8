"""Rules for the calls of a turn: the built-in loop detection, and the set that asks all rules in order."""
