import json
import unittest
import warnings

import letters
import storage
from people import Person


class Hidden(unittest.TestCase):
    def test_the_field(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            person = Person(name="Ada", email="ada@example.org")
            self.assertEqual(letters.header(person), "To: Ada <ada@example.org>")
            self.assertEqual(json.loads(storage.dump([person])), [{"name": "Ada", "email": "ada@example.org"}])

    def test_both_spellings(self):
        text = '[{"name": "a", "mail": "a@x"}, {"name": "b", "email": "b@x"}]'
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual([person.email for person in storage.load(text)], ["a@x", "b@x"])

    def test_the_old_name(self):
        with self.assertWarns(DeprecationWarning):
            self.assertEqual(Person("Ada", "ada@example.org").mail, "ada@example.org")

    def test_unknown_fields_are_still_refused(self):
        with self.assertRaises(TypeError):
            storage.load('[{"name": "a", "email": "a@x", "age": 3}]')
