"""The CPU target: kernel forms, schedules, machine code; imports core, eager, vecmath, compiler,
runtime, backends."""
