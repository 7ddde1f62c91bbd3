"""横批: the scroll of four characters over a couplet, chosen from a list of traditional ones."""
