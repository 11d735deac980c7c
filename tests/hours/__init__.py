"""Tests at other hours: everything that reads the clock, under clocks that are moved."""
