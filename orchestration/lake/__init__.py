"""The lake: days that are over, as Iceberg tables in a folder or an object store, for any engine that reads those."""
