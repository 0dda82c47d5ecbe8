"""What a drone asks for on behalf of a run: blobs and the permission to push."""
