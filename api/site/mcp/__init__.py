"""The service for language models: tools and documentation by the Model Context Protocol."""
