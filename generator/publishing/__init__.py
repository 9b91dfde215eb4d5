"""What a publish has to make, and making it: plan, build, keep, swap."""
