from mutants.mutant import Group
GROUP = Group("rtl", (), ())
