import unittest

from rounding import to_tens


class Rounding(unittest.TestCase):
    def test_half_up(self):
        self.assertEqual(to_tens(25), 30)

    def test_half_even(self):
        self.assertEqual(to_tens(25), 20)
