"""The sandbox room: guests in Bubblewrap, each one tool, none of it trusted."""
