import unittest

from calc import evaluate


class Calculator(unittest.TestCase):
    def test_precedence(self):
        self.assertEqual(evaluate("1 + 2 * (3 - 1) / 4"), 2)

    def test_errors(self):
        for wrong in ("", "1 +", "(1", "1 2", "x"):
            with self.assertRaises(ValueError):
                evaluate(wrong)
