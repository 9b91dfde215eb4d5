"""The contract between harness and generator (contract: README, "What it is"): the one package that harness imports.

`errors` what a person meets · `names` the grammar of ids · `canonical` JSON and hashes · `bank` the instrument and
its rendering · `panel` who judges whom · `verdict` from votes to a final label · `manifest` the run · `layout` where
every planned row stands · `audit_draw` which rows a human reviews · `columns` and `tables` every published column.
"""
