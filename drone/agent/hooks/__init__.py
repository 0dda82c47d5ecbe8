"""Events that extensions receive, and the changes they may make, while the loop runs."""
