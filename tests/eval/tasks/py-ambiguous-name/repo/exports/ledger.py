"""The export to Ledger: every night, for billing."""


def run(rows):
    return "\n".join(f"{row['day']} {row['amount']}" for row in rows)
