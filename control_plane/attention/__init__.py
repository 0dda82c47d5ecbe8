"""Attention: telling users what waits for them, through the channels that they chose, while no page is in front."""
