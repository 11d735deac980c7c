"""Chain indexer: follows the head, backfills ranges and recounts them. Nothing here depends on Dagster."""
