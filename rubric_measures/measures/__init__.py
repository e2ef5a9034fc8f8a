"""The grades of a query, and the measures over them."""
