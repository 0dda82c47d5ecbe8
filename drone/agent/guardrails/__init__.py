"""Rules over the calls of a turn: the built-in loop detection, and the set in which all rules are asked in order."""
