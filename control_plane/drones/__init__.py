"""The control plane's side of a drone: its load and its inbox."""
