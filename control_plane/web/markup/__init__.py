"""Foreign text as HTML: Markdown, source code and terminal output, each sanitized and with nothing hidden."""
