"""A run on its way through eval and judge to its receipts."""
