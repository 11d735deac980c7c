"""Client of the CLOB API: order books, prices, price history."""
