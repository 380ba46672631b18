"""How Kafka itself makes what the rules look at: legal ways, and why each rule is silent about them."""
