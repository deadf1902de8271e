"""The CPU target: kernel forms, schedules and machine code for x86-64 and ARM."""
