"""The past, told again: in the exchange's own words or in ours."""
