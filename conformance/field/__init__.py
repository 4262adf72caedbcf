"""The index that the field served in January 2026, and what each machine gets from it."""
