"""The public functions, which join the rooms of the library."""
