"""Pure: commands, state and definition in, facts and effects out; no plugin, no clock, no I/O."""
