"""What ``harness init`` writes, as package data: the six files with comments, and the demonstration's replies."""
