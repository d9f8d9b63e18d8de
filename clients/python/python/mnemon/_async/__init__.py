"""The async client. `clients/generate.py` makes the sync client from these files."""
