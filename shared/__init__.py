"""What both sides of the wire agree on: models, errors, names, states, sealing."""
