"""Ask-and-tell strategies over terms: pure objects in memory that import no storage."""
