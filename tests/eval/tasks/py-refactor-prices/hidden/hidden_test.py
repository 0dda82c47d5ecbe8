import ast
import subprocess
import sys
import unittest
from pathlib import Path

import invoice
import money
import receipt
import report


class Hidden(unittest.TestCase):
    def test_the_output(self):
        self.assertEqual(invoice.lines([("a", 1234.5), ("b", -3)]), ["a: $1,234.50", "b: -$3.00"])
        self.assertEqual((receipt.total([1, 2.5]), receipt.total([-1000])), ("Total: $3.50", "Total: -$1,000.00"))
        self.assertEqual(report.row("May", 2), "May                $2.00")
        self.assertEqual(report.row("May", -3), "May               -$3.00")

    def test_the_function(self):
        self.assertEqual([money.price(amount) for amount in (0, 0.005, -2, 1e6)], ["$0.00", "$0.01", "-$2.00", "$1,000,000.00"])

    def test_nothing_is_repeated(self):
        for name in ("invoice", "receipt", "report"):
            text = Path(f"{name}.py").read_text()
            self.assertNotIn(".2f", text)
            self.assertIn("money", {each.split(".")[0] for each in imported(text)})

    def test_its_own_test(self):
        text = Path("test_money.py").read_text()
        self.assertIn("price", text)
        done = subprocess.run([sys.executable, "-m", "unittest", "-v", "test_money"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("Ran 0 tests", done.stderr)


def imported(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
