"""The UDF data feed of TradingView's charting library."""
