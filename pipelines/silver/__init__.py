"""Silver: grammars that read log records into typed facts, and the stage that stores them."""
