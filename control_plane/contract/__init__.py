"""What the control plane's interfaces agree on: operations, their documents, and the checks of requests.

All that the command line needs before it asks a server; quick to import.
"""
