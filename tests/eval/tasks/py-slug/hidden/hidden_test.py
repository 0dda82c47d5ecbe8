import unittest

from slugs import slug


class Hidden(unittest.TestCase):
    def test_words(self):
        self.assertEqual(slug("  Hello, World! 2 "), "hello-world-2")

    def test_accents(self):
        self.assertEqual(slug("Café Straße Ångström"), "cafe-strasse-angstrom")

    def test_nothing_left(self):
        self.assertEqual(slug("!?"), "untitled")
        self.assertEqual(slug("!?", {"untitled"}), "untitled-2")

    def test_taken(self):
        self.assertEqual(slug("a b", ["a-b"]), "a-b-2")
        self.assertEqual(slug("a b", ["a-b", "a-b-2"]), "a-b-3")
        self.assertEqual(slug("a b", {"a-b-2"}), "a-b")
