"""What everything is made of: items, banks, grades, scales, passages, runs: frozen, no reading or writing."""
