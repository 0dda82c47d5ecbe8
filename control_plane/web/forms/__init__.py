"""Forms and actions of pages, derived from the declarations of the operations, as the commands are."""
