"""The sync client: generated from `mnemon._async`, besides `io.py`."""
