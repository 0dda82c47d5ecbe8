"""Files of `fleet batch`: rows and templates in, results out."""
