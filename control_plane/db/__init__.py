"""The database: rows, engine, migrations. The row is the truth; Redis only carries."""
