"""The chain, indexed: its head followed, ranges filled in and counted again. Nothing here knows of Dagster."""
