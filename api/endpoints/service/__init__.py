"""Health, time, pipeline status, metrics and the API's own documents."""
