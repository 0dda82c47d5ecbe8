import unittest

import calc


class Hidden(unittest.TestCase):
    def test_the_tree(self):
        one, two, three = (("num", float(number)) for number in (1, 2, 3))
        self.assertEqual(calc.parse("1"), one)
        self.assertEqual(calc.parse("1 - 2 - 3"), ("-", ("-", one, two), three))
        self.assertEqual(calc.parse("1 + 2 * 3"), ("+", one, ("*", two, three)))
        self.assertEqual(calc.parse("(1 + 2) / 3"), ("/", ("+", one, two), three))

    def test_nothing_is_calculated(self):
        self.assertEqual(calc.parse("1/0"), ("/", ("num", 1.0), ("num", 0.0)))
        with self.assertRaises(ZeroDivisionError):
            calc.evaluate("1/0")

    def test_evaluate_uses_the_tree(self):
        original = calc.parse
        calc.parse = lambda text: ("*", ("num", 6.0), ("num", 7.0))
        try:
            self.assertEqual(calc.evaluate("1"), 42)
        finally:
            calc.parse = original

    def test_errors(self):
        messages = []
        for wrong in ("", "1 +", "(1", "1 2", "x"):
            with self.assertRaises(ValueError) as raised:
                calc.evaluate(wrong)
            messages.append(str(raised.exception))
        self.assertEqual(messages, ["unexpected ''", "unexpected ''", "missing )", "unexpected '2'", "unexpected 'x'"])

    def test_values(self):
        self.assertEqual(calc.evaluate("8 / 2 / 2 - 1 - 1"), 0)
        self.assertEqual(calc.evaluate("2.5 * (3 - 1)"), 5)
