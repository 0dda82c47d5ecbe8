"""The database: rows, engine, migrations. The row is authoritative; Redis is only transport."""
