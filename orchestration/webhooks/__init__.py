"""Webhooks: events made into deliveries, deliveries made until they arrive or ten attempts have failed."""
