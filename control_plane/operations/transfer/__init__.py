"""An organization as a file of lines, and back: to move it to another installation, or to keep it."""

from control_plane.operations.transfer.exporting import export_lines
from control_plane.operations.transfer.importing import import_file, import_lines

__all__ = ["export_lines", "import_file", "import_lines"]
