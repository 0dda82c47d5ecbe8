def header(person):
    return f"To: {person.name} <{person.mail}>"
