"""The public functions that join several rooms: answers evaluated, boards checked and packed, games rated."""
