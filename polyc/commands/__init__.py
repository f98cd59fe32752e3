"""What stands behind the commands of `polyc`; each module is one command or a helper of several."""
