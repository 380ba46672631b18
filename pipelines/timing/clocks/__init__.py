"""How far brokers' clocks are apart, from what must have come before what."""
