from mutants.mutant import Group
ISA = Group("isa", (), ())
SIMULATOR = Group("simulator", (), ())
