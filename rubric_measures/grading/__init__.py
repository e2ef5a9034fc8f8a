"""Grading: prompts put to a model, replies read, grades with a status added to passage records; test banks made."""
