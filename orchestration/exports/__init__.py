"""Exports: days of data as Parquet and CSV files, with what they hold and their digests."""
