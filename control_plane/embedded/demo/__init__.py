"""`fleet up --demo`: a small repository with a failing test, and a scripted model that fixes it."""
