"""Exports of whole days as files."""
