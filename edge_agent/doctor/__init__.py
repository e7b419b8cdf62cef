"""What this machine has and lacks for StyleEyes, each with the fix; used by the command and the screen."""
