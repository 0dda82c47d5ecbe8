"""Teams at work: whose turn it is, what they are told, and what follows from what they wrote."""
