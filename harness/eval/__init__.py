"""Stage eval: which prompts are asked, of whom, and which answers can be used."""
