"""Finding rows by the names that people use; always within one organization."""
