"""The items, by id."""

ITEMS = {}


def add(number, name):
    ITEMS[number] = {"id": number, "name": name}
