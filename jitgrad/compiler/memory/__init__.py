"""Where values are stored: layouts, lifetimes, in-place updates, one arena. Imports lowering."""
