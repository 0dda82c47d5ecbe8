from dataclasses import dataclass


@dataclass
class Person:
    name: str
    mail: str
