"""`drone run`: the loop alone, without a control plane."""
