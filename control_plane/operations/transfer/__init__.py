"""Export an organization to a file of lines, and import it: for a move to another installation, or as a backup."""

from control_plane.operations.transfer.exporting import export_lines
from control_plane.operations.transfer.importing import import_file, import_lines

__all__ = ["export_lines", "import_file", "import_lines"]
