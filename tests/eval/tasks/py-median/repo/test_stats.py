import unittest

from stats import mean, median


class Statistics(unittest.TestCase):
    def test_mean(self):
        self.assertEqual(mean([1, 2, 6]), 3)

    def test_median_of_an_odd_number(self):
        self.assertEqual(median([3, 1, 2]), 2)
