"""The reference page `/docs`: of our own, made of the OpenAPI document, that needs nothing of anyone else."""
