"""The tools that come with mini-agent, registered by entry point as anyone else's would be."""
