"""What is imported when it is first asked for: `names` of torch (which module has which), and
`modules` (found late, or under a second name)."""
