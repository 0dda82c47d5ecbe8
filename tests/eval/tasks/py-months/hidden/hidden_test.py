import unittest
from datetime import date

from calendar_math import add_months


class Hidden(unittest.TestCase):
    def test_the_last_day(self):
        self.assertEqual(add_months(date(2024, 1, 31), 1), date(2024, 2, 29))
        self.assertEqual(add_months(date(2023, 1, 31), 1), date(2023, 2, 28))
        self.assertEqual(add_months(date(2023, 3, 31), 1), date(2023, 4, 30))

    def test_december(self):
        self.assertEqual(add_months(date(2023, 11, 5), 1), date(2023, 12, 5))
        self.assertEqual(add_months(date(2023, 12, 5), 1), date(2024, 1, 5))
        self.assertEqual(add_months(date(2023, 12, 5), 12), date(2024, 12, 5))

    def test_backwards(self):
        self.assertEqual(add_months(date(2024, 3, 31), -1), date(2024, 2, 29))
        self.assertEqual(add_months(date(2024, 1, 5), -1), date(2023, 12, 5))
        self.assertEqual(add_months(date(2024, 1, 5), -13), date(2022, 12, 5))

    def test_none(self):
        self.assertEqual(add_months(date(2024, 12, 31), 0), date(2024, 12, 31))
