"""Models behind one method: complete(requests) -> replies; and the reply cache."""
