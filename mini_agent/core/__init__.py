"""Pure values and rules: no I/O, no tasks, nothing imported from another room."""
