//! The command that compares entries with a network's own report.
