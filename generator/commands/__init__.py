"""The generator's commands, a verb a file; each reads its inputs, calls pure parts and writes its outputs."""
