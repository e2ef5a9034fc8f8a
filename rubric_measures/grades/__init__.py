"""From records, rows or assignments to the compiled grades that measures read, and to qrels."""
