"""What a request costs on one, two and three hosts with the API beside one database and its replica."""
