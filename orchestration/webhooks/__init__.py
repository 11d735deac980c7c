"""Webhooks: events become deliveries, which are retried until they arrive or ten attempts have failed."""
