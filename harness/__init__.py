"""Asks models, has a panel of judges label the answers blind to the group, and writes receipts."""
