"""Exports: days of data as Parquet and CSV files, with a manifest of contents and digests."""
