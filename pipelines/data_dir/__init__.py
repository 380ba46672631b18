"""Data directories: checkpoint files, log segments and the metadata log of a broker, as further witnesses."""
