import unittest

from shares import split


class Hidden(unittest.TestCase):
    def test_the_rest(self):
        self.assertEqual(split(100, [1, 1, 1]), [34, 33, 33])
        self.assertEqual(split(101, [1, 1, 1]), [34, 34, 33])
        self.assertEqual(split(10, [1, 2, 4]), [1, 3, 6])
        self.assertEqual(split(5, [0, 1, 1]), [0, 3, 2])

    def test_large_amounts_are_exact(self):
        parts = split(10**18 + 1, [1, 1])
        self.assertEqual(parts, [5 * 10**17 + 1, 5 * 10**17])

    def test_every_sum(self):
        for cents in range(60):
            self.assertEqual(sum(split(cents, [3, 5, 7])), cents)

    def test_wrong_weights(self):
        for wrong in ([0, 0], [-1, 2], []):
            with self.assertRaises(ValueError):
                split(10, wrong)
