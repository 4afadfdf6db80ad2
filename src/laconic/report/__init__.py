"""Tables and figures of plain values; what they are drawn from stays with the experiments."""
