import unittest

from run import run

CUSTOMERS = [(1, "Ada"), (2, "Bob"), (3, "Cem"), (4, "Dora"), (5, "Eve")]


class Hidden(unittest.TestCase):
    def test_the_report(self):
        orders = [(1, 1, 1), (2, 1, 1), (3, 2, 0), (4, 3, 1), (5, 4, 1), (6, 4, 0)]
        items = [(1, 100), (1, 50), (2, 25), (3, 999), (5, 175), (6, 1)]
        expected = [("Ada", 2, 175), ("Dora", 1, 175), ("Bob", 0, 0), ("Cem", 1, 0), ("Eve", 0, 0)]
        self.assertEqual(run(CUSTOMERS, orders, items), expected)

    def test_nothing(self):
        self.assertEqual(run([], [], []), [])

    def test_namesakes_are_two_customers(self):
        self.assertEqual(run([(1, "Ada"), (2, "Ada")], [(1, 1, 1)], [(1, 5)]), [("Ada", 1, 5), ("Ada", 0, 0)])
