"""Work orders: submit, read, steer, retry, resume, cancel."""
