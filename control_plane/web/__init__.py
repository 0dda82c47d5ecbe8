"""The web application: the HTTP interface under /api/v1, its live streams, and the pages."""
