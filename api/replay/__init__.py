"""Replays of stored data, in the exchange's own protocol or in the stream's."""
