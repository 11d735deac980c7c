"""The service for language models: tools and documentation over the Model Context Protocol."""
