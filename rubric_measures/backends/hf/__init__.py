"""Models of Hugging Face (transformers, torch), in this process."""
