"""What a value must look like before it is stored, and secrets that are issued once."""
