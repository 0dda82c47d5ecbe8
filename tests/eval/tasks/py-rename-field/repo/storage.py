import json

from people import Person


def load(text):
    return [Person(**record) for record in json.loads(text)]


def dump(people):
    return json.dumps([{"name": person.name, "mail": person.mail} for person in people])
