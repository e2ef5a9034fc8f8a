"""The reply cache, and what it knows of the models that replied."""
