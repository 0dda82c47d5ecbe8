"""How each user is told of what waits for them."""
