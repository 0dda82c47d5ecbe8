"""The loop with a code host: comments, reviews, checks and conflicts there start and continue orders.

A webhook only says that something happened (`arriving`). A drone reads what it was, with the login of its
workstation, and writes the fleet's comments in the same order (`syncing`). What it read is acted on in one transaction
with its key, so that it counts once however often and in whatever order it is reported (`acting`, `turns`, `prompts`).
The fleet's comments are rows that say what is to be there and what was written (`posts`, `status_text`).
"""
