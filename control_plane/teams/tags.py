"""Tags in comments: `@name`, as people write them (S-050)."""
