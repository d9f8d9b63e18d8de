"""Reads the table of an index as other programs do: with pandas, and with DuckDB."""

import sys

import duckdb
import lance

table = lance.dataset(sys.argv[1])

frame = table.to_table().to_pandas()
vectors = [name for name in frame.columns if name.startswith("vector_")]
placed = frame[vectors[0]].dropna()
print(f"pandas: {len(frame)} documents, {len(placed)} vectors of {len(placed.iloc[0])}")

documents = table.to_table(columns=["id", "owner_user", "tags"])
query = "select owner_user, id, tags[1] from documents where owner_user is not null"
for user, name, tag in duckdb.sql(query).fetchall():
    print(f"duckdb: {user} has {name} with {tag}")
