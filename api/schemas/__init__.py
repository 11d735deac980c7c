"""Types that several endpoints share: request parameters and response records."""
