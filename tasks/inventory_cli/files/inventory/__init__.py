"""Stock from movements: read, keep a ledger, report."""
